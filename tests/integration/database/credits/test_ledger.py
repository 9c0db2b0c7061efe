"""Guarantees of the ledger, on the real database."""

from datetime import UTC, datetime, timedelta

import pytest

from features.credits.application.ports import EntryFilter
from features.credits.domain.errors import ReferenceReused
from infrastructure.database.credits.ledger import PostgresCreditReader
from tests.support import NOON
from tests.support.sql_ledger import LedgerRejection, SqlLedger

SOON = datetime.now(UTC) + timedelta(days=1)
LATER = datetime.now(UTC) + timedelta(days=2)


@pytest.fixture
def ledger(database):
    return SqlLedger(database.admin("test"))


@pytest.fixture
def reader(database):
    return PostgresCreditReader(database)


@pytest.fixture(autouse=True)
async def the_books_agree(ledger):
    yield
    assert await ledger.audit() == []


async def grant(ledger, tenant, credits_granted, reference="g", expires_at=None, kind="admin_grant"):
    return await ledger.grant(
        tenant.account_id,
        credits_granted,
        reference=reference,
        transaction_type=kind,
        expires_at=expires_at,
        description=None,
    )


async def hold(ledger, tenant, credits_held, reference="h"):
    return await ledger.place_hold(tenant.account_id, credits_held, reference)


async def refund(ledger, tenant, credits_refunded, reference="r", hold_reference="h"):
    return await ledger.refund(tenant.account_id, hold_reference, credits_refunded, reference)


async def lots(owner, tenant):
    """Returns the available credits by lot, in the order of granting."""
    rows = await owner.fetch(
        "select credits_available from credit_lots where account_id = $1 order by id", tenant.account_id
    )
    return [row["credits_available"] for row in rows]


async def let_lapse(owner, tenant):
    """Moves every expiry into the past, as a day of waiting would."""
    await owner.execute(
        "update credit_lots set expires_at = now() - interval '1 hour', grace_until = null"
        " where account_id = $1 and expires_at is not null",
        tenant.account_id,
    )
    await owner.execute(
        "update credit_accounts set next_lapse_at = now() - interval '1 hour' where account_id = $1",
        tenant.account_id,
    )


async def test_hold_takes_from_the_lot_that_expires_first(ledger, owner, tenant):
    await grant(ledger, tenant, 5, "for good")
    await grant(ledger, tenant, 5, "later", LATER)
    await grant(ledger, tenant, 5, "soon", SOON)

    await hold(ledger, tenant, 7)

    assert await lots(owner, tenant) == [5, 3, 0]


async def test_settling_spends_the_lot_that_expires_first_and_releases_the_other(ledger, owner, tenant):
    await grant(ledger, tenant, 5, "later", LATER)
    await grant(ledger, tenant, 5, "soon", SOON)
    await hold(ledger, tenant, 8)

    settled = await ledger.settle_hold(tenant.account_id, reference="h", credits_spent=4)

    assert (settled.credits_available, settled.credits_held) == (6, 0)
    assert await lots(owner, tenant) == [5, 1]


async def test_a_release_returns_every_credit_to_its_lot(ledger, owner, tenant):
    await grant(ledger, tenant, 5, "later", LATER)
    await grant(ledger, tenant, 5, "soon", SOON)
    await hold(ledger, tenant, 8)

    await ledger.release_hold(tenant.account_id, reference="h")

    assert await lots(owner, tenant) == [5, 5]


async def test_refund_returns_to_its_lots_the_latest_expiry_first(ledger, owner, tenant):
    await grant(ledger, tenant, 5, "later", LATER)
    await grant(ledger, tenant, 5, "soon", SOON)
    await hold(ledger, tenant, 8)
    await ledger.settle_hold(tenant.account_id, reference="h", credits_spent=8)

    await refund(ledger, tenant, 4)

    assert await lots(owner, tenant) == [5, 1]


async def test_partial_refunds_never_exceed_the_charge(ledger, tenant):
    await grant(ledger, tenant, 10)
    await hold(ledger, tenant, 6)
    await ledger.settle_hold(tenant.account_id, reference="h", credits_spent=6)
    await refund(ledger, tenant, 4, "first")

    with pytest.raises(LedgerRejection, match="exceeds_charge") as rejection:
        await refund(ledger, tenant, 3, "second")

    assert rejection.value.row["credits_moved"] == 2


async def test_expired_credits_cannot_be_held(ledger, owner, tenant):
    await grant(ledger, tenant, 5, expires_at=SOON)
    await let_lapse(owner, tenant)

    with pytest.raises(LedgerRejection, match="insufficient") as rejection:
        await hold(ledger, tenant, 1)

    assert rejection.value.row["credits_available"] == 0


async def test_expired_credits_are_written_off_once(ledger, owner, reader, tenant):
    await grant(ledger, tenant, 5, expires_at=SOON)
    await grant(ledger, tenant, 3, "for good")
    await ledger.expire_lots(1_000)  # lots of other tests
    await let_lapse(owner, tenant)

    sweeps = [await ledger.expire_lots(100), await ledger.expire_lots(100)]

    assert [credits_expired for _, credits_expired in sweeps] == [5, 0]
    entry, *_ = await reader.entries(tenant.caller, EntryFilter(), before=None, entries_max=1)
    assert (entry.kind, entry.credits_delta, entry.balance_after) == ("expire", -5, 3)


async def test_held_credits_outlive_their_lot_until_the_hold_ends(ledger, owner, tenant):
    await grant(ledger, tenant, 5, expires_at=SOON)
    await hold(ledger, tenant, 5)
    await let_lapse(owner, tenant)

    settled = await ledger.settle_hold(tenant.account_id, reference="h", credits_spent=5)

    assert (settled.credits_moved, settled.credits_available, settled.credits_held) == (5, 0, 0)


async def test_credits_returned_to_an_expired_lot_are_valid_for_another_week(ledger, owner, reader, tenant):
    await grant(ledger, tenant, 5, expires_at=SOON)
    await hold(ledger, tenant, 3)
    await let_lapse(owner, tenant)

    await ledger.release_hold(tenant.account_id, reference="h")

    balance = await reader.balance(tenant.caller)
    assert balance.credits_available == 3
    left = balance.next_expiry_at - datetime.now(UTC)
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7)


@pytest.mark.parametrize(
    ("kind", "source"),
    [("subscription_renewal", "plan"), ("purchase", "purchase"), ("signup_bonus", "promotion")],
)
async def test_kind_of_lot_follows_from_the_grants_reason(ledger, owner, tenant, kind, source):
    await grant(ledger, tenant, 1, kind=kind)

    assert source == await owner.fetchval(
        "select source from credit_lots where account_id = $1", tenant.account_id
    )


async def test_every_operation_is_idempotent(ledger, tenant):
    async def everything():
        return [
            await grant(ledger, tenant, 10, expires_at=LATER),
            await hold(ledger, tenant, 5),
            await ledger.settle_hold(tenant.account_id, reference="h", credits_spent=4),
            await refund(ledger, tenant, 2),
            await hold(ledger, tenant, 3, "released"),
            await ledger.release_hold(tenant.account_id, reference="released"),
        ]

    first, second = await everything(), await everything()

    assert [movement.repeated for movement in first] == [False] * 6
    assert [movement.repeated for movement in second] == [True] * 6
    assert [movement.credits_moved for movement in second] == [movement.credits_moved for movement in first]
    assert {movement.credits_available for movement in second} == {8}


async def test_repetition_with_other_content_is_rejected_and_changes_nothing(ledger, tenant, reader):
    await grant(ledger, tenant, 10, expires_at=LATER)
    await hold(ledger, tenant, 5)
    await ledger.settle_hold(tenant.account_id, reference="h", credits_spent=4)
    await refund(ledger, tenant, 2)
    before = await reader.balance(tenant.caller)

    for changed in (
        grant(ledger, tenant, 11, expires_at=LATER),
        grant(ledger, tenant, 10, expires_at=SOON),
        grant(ledger, tenant, 10, expires_at=LATER, kind="purchase"),
        hold(ledger, tenant, 6),
        ledger.settle_hold(tenant.account_id, reference="h", credits_spent=3),
        refund(ledger, tenant, 1),
    ):
        with pytest.raises((ReferenceReused, LedgerRejection), match=r"conflicting|used before"):
            await changed

    assert await reader.balance(tenant.caller) == before


async def test_hold_ends_only_once(ledger, tenant):
    await grant(ledger, tenant, 10)
    await hold(ledger, tenant, 5)
    await ledger.release_hold(tenant.account_id, reference="h")

    with pytest.raises(LedgerRejection, match="closed_hold"):
        await ledger.settle_hold(tenant.account_id, reference="h", credits_spent=5)


async def test_unknown_account_is_rejected(ledger, tenant):
    with pytest.raises(LedgerRejection, match="unknown_account"):
        await ledger.release_hold(tenant.caller.user_id, reference="h")


async def deduct(owner, tenant, amount, kind, reference="d"):
    row = await owner.fetchrow(
        "select * from deduct_credits($1, $2, $3, $4)", tenant.account_id, amount, kind, reference
    )
    return row["outcome"], row["credits_available"]


async def test_deduct_credits_grants_with_a_positive_and_spends_with_a_negative_amount(owner, tenant):
    assert await deduct(owner, tenant, 100, "subscription_renewal", "renewal") == ("done", 100)
    assert await deduct(owner, tenant, -30, "analysis", "run") == ("done", 70)
    assert await deduct(owner, tenant, -30, "analysis", "run") == ("repeated", 70)
    assert await deduct(owner, tenant, 30, "refund", "run") == ("done", 100)
    assert await deduct(owner, tenant, 30, "refund", "run") == ("repeated", 100)


@pytest.mark.parametrize(
    ("amount", "kind", "outcome"),
    [
        (-5, "subscription_renewal", "wrong_sign"),
        (5, "analysis", "wrong_sign"),
        (-5, "refund", "wrong_sign"),
        (0, "analysis", "wrong_sign"),
        (5, "no_such_type", "unknown_type"),
        (-5, "analysis", "insufficient"),
    ],
)
async def test_deduct_credits_rejects_a_wrong_sign(owner, tenant, amount, kind, outcome):
    assert (await deduct(owner, tenant, amount, kind))[0] == outcome


@pytest.mark.parametrize(
    "call",
    [
        "ledger.grant_credits($1, -1, 'x', 'admin_grant')",
        "ledger.grant_credits($1, null, 'x', 'admin_grant')",
        "ledger.grant_credits($1, 1, null, 'admin_grant')",
        "ledger.place_hold($1, -1, 'x', 'analysis')",
        "ledger.place_hold($1, 0, 'x', 'analysis')",
        "ledger.settle_hold($1, 'h', -1)",
        "ledger.settle_hold($1, 'h', null)",
        "ledger.refund_charge($1, 's', -1, 'x')",
        "ledger.refund_charge($1, 's', null, 'x')",
    ],
)
async def test_database_rejects_invalid_arguments(ledger, owner, tenant, call):
    await grant(ledger, tenant, 10)
    await hold(ledger, tenant, 5)
    await owner.execute("select ledger.spend($1, 2, 's', 'analysis')", tenant.account_id)

    with pytest.raises(Exception, match=r"check|not-null|least"):
        await owner.execute(f"select {call}", tenant.account_id)


async def test_ledger_operation_joins_the_open_transaction(database, ledger, reader, tenant):
    class ChangedMyMind(Exception):
        pass

    with pytest.raises(ChangedMyMind):
        async with database.admin("test").transaction():
            await grant(ledger, tenant, 10)
            raise ChangedMyMind

    assert (await reader.balance(tenant.caller)).credits_available == 0


async def test_rejected_operation_leaves_its_transaction_usable(database, ledger, reader, tenant):
    async with database.admin("test").transaction():
        with pytest.raises(LedgerRejection, match="insufficient"):
            await hold(ledger, tenant, 1)
        await grant(ledger, tenant, 10)

    assert (await reader.balance(tenant.caller)).credits_available == 10


async def test_entries_before_a_position_come_newest_first(ledger, reader, tenant):
    for number in range(4):
        await grant(ledger, tenant, 1, f"g{number}")

    entries = await reader.entries(tenant.caller, EntryFilter(since=NOON), before=4, entries_max=2)

    assert [entry.position for entry in entries] == [3, 2]
