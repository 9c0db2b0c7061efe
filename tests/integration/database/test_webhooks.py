"""Webhook messages in the transaction of their event, and deliveries claimed by workers."""

import asyncio
import json
import uuid
from datetime import timedelta

import asyncpg
import pytest

from features.webhooks.domain.delivery import DeliveryDecision, DeliveryResponse
from infrastructure.database.webhooks.outbox import PostgresOutbox
from tests.conftest import make_tenant
from tests.integration.database.rows import new_endpoint
from tests.support import until

LEASE = timedelta(seconds=60)
DELIVERED = (DeliveryResponse(http_status=200, duration_ms=5), DeliveryDecision(status="delivered"))
RETRIED = (
    DeliveryResponse(error="timed_out", duration_ms=9),
    DeliveryDecision(status="pending", retry_in=timedelta(minutes=5)),
)
START = "select (runs.start($1, $2, $3, '{\"username\": \"ada\"}', $4, 'analysis', 'no_worker', $5)).outcome"
PROCESS = "update runs set status = 'processing', fence = 1 where account_id = $1 and id = $2"
FINISH = "select runs.finish($1, $2, 1, $3, 'done', $4, $5)"


@pytest.fixture
def outbox(database):
    return PostgresOutbox(database.admin("webhooks test"))


@pytest.fixture
async def account_id(owner):
    return await listening(owner)


async def listening(owner, url=None):
    """An account that has credits, and an endpoint on its own host."""
    account_id = (await make_tenant(owner)).account_id
    await owner.execute("select ledger.grant_credits($1, 100, 'g', 'admin_grant')", account_id)
    await new_endpoint(owner, account_id, url=url or f"https://{uuid.uuid4().hex}.example")
    return account_id


async def started(owner, account_id, kind="deep_analysis", credits_held=5):
    run_id = uuid.uuid4()
    await owner.execute(START, account_id, run_id, kind, credits_held, True)
    await owner.execute(PROCESS, account_id, run_id)
    return run_id


async def messages_of(owner, account_id):
    rows = await owner.fetch(
        "select type, data from webhook_messages where account_id = $1 order by created_at", account_id
    )
    return [(row["type"], json.loads(row["data"])) for row in rows]


async def types(owner, account_id):
    return [message for message, _ in await messages_of(owner, account_id)]


async def emitted(owner, account_id, count=1):
    for number in range(count):
        await owner.execute(
            "select webhooks.enqueue($1, 'batch.completed', $2)", account_id, json.dumps({"n": number})
        )


async def claimed_of(outbox, *account_ids, deliveries_max=1_000, per_account_max=5):
    claimed = await outbox.claim(deliveries_max, per_account_max=per_account_max, lease=LEASE)
    return [due for due in claimed if due.account_id in account_ids]


async def deliveries(owner, account_id):
    return await owner.fetch(
        "select * from webhook_deliveries where account_id = $1 order by created_at", account_id
    )


# Messages


@pytest.mark.parametrize(
    ("kind", "status", "error", "expected"),
    [
        ("deep_analysis", "completed", None, "run.completed"),
        ("deep_analysis", "failed", "broken", "run.failed"),
        ("deep_analysis", "cancelled", None, "run.cancelled"),
        ("bulk_analysis", "completed", None, "bulk.completed"),
        ("bulk_analysis", "failed", "broken", "run.failed"),
    ],
)
async def test_end_of_a_run_creates_a_message(owner, account_id, kind, status, error, expected):
    run_id = await started(owner, account_id, kind)

    await owner.execute(FINISH, account_id, run_id, status, error, 3)

    ((message, data),) = await messages_of(owner, account_id)
    assert message == expected
    assert (data["run_id"], data["kind"], data["status"], data["error"]) == (str(run_id), kind, status, error)
    assert (data["credits_held"], data["credits_charged"]) == (5, 3)
    assert data["subject"] == {"username": "ada"}


async def test_cancellation_of_a_queued_run_creates_a_message(owner, account_id):
    run_id = uuid.uuid4()
    await owner.execute(START, account_id, run_id, "deep_analysis", 0, True)

    await owner.execute("select runs.request_cancel($1, $2)", account_id, run_id)

    assert await types(owner, account_id) == ["run.cancelled"]


async def test_children_of_a_run_create_one_message(owner, account_id):
    bulk_id, item_id = uuid.uuid4(), uuid.uuid4()
    await owner.execute(START, account_id, bulk_id, "bulk_analysis", 0, False)
    await owner.execute(
        "select runs.start($1, $2, 'deep_analysis', '{}', 5, 'analysis', 'no_worker', parent => $3)",
        *(account_id, item_id, bulk_id),
    )
    for run_id, charged in ((item_id, 4), (bulk_id, 0)):
        await owner.execute(PROCESS, account_id, run_id)
        await owner.execute(FINISH, account_id, run_id, "completed", None, charged)

    ((message, data),) = await messages_of(owner, account_id)
    assert message == "bulk.completed"
    assert (data["run_id"], data["credits_held"], data["credits_charged"]) == (str(bulk_id), 5, 4)


async def test_rolled_back_event_creates_no_message(owner, account_id):
    run_id = await started(owner, account_id)
    change = owner.transaction()
    await change.start()
    await owner.execute(FINISH, account_id, run_id, "completed", None, 5)
    await change.rollback()

    assert await messages_of(owner, account_id) == []


async def test_account_without_an_endpoint_gets_no_message(owner, tenant):
    run_id = await started(owner, tenant.account_id, credits_held=0)

    await owner.execute(FINISH, tenant.account_id, run_id, "completed", None, 0)

    assert await messages_of(owner, tenant.account_id) == []


@pytest.mark.parametrize(
    "change", ["status = 'disabled', disabled_reason = 'gone'", "types = '{credits.low}'"]
)
async def test_endpoint_without_a_matching_subscription_gets_no_message(owner, account_id, change):
    await owner.execute(f"update webhook_endpoints set {change} where account_id = $1", account_id)

    await emitted(owner, account_id)

    assert await messages_of(owner, account_id) == []


async def test_every_matching_endpoint_gets_one_delivery(owner, account_id):
    await new_endpoint(owner, account_id, types=("batch.completed",))
    await new_endpoint(owner, account_id, types=("run.failed",))

    await emitted(owner, account_id)

    rows = await deliveries(owner, account_id)
    assert len({row["endpoint_id"] for row in rows}) == len(rows) == 2
    assert {(row["type"], row["status"]) for row in rows} == {("batch.completed", "pending")}


async def test_low_credits_create_one_message_until_they_rise_again(owner, account_id):
    """The free plan grants 10 a month, so its threshold is 1. Here the threshold is 50 of 100."""
    await owner.execute("update accounts set credits_low_at = 50 where id = $1", account_id)
    spend = "select ledger.spend($1, $2, $3, 'analysis')"
    await owner.execute(spend, account_id, 50, "a")
    assert await messages_of(owner, account_id) == []

    await owner.execute(spend, account_id, 1, "b")
    await owner.execute(spend, account_id, 1, "c")
    await owner.execute("select ledger.grant_credits($1, 10, 'h', 'admin_grant')", account_id)
    await owner.execute(spend, account_id, 10, "d")

    assert await messages_of(owner, account_id) == [
        ("credits.low", {"credits_available": 49, "credits_held": 0, "credits_low_at": 50}),
        ("credits.low", {"credits_available": 48, "credits_held": 0, "credits_low_at": 50}),
    ]


async def test_held_and_released_credits_cross_no_threshold(owner, account_id):
    await owner.execute("update accounts set credits_low_at = 50 where id = $1", account_id)
    for number in range(3):
        reference = f"h{number}"
        await owner.execute("select ledger.place_hold($1, 60, $2, 'analysis')", account_id, reference)
        await owner.execute("select ledger.release_hold($1, $2)", account_id, reference)

    assert await messages_of(owner, account_id) == []


async def test_held_credits_are_low_once_they_are_spent(owner, account_id):
    await owner.execute("update accounts set credits_low_at = 50 where id = $1", account_id)
    await owner.execute("select ledger.place_hold($1, 60, 'h', 'analysis')", account_id)
    assert await messages_of(owner, account_id) == []

    await owner.execute("select ledger.settle_hold($1, 'h', 55)", account_id)

    assert await types(owner, account_id) == ["credits.low"]


async def test_default_threshold_is_a_tenth_of_the_plans_credits(owner, account_id):
    await owner.execute("update accounts set plan = 'growth' where id = $1", account_id)

    await owner.execute("select ledger.spend($1, 76, 'a', 'analysis')", account_id)

    ((_, data),) = await messages_of(owner, account_id)
    assert data == {"credits_available": 24, "credits_held": 0, "credits_low_at": 25}


async def test_credit_account_records_whether_the_account_has_endpoints(owner, tenant):
    account_id = tenant.account_id
    has_endpoints = "select has_endpoints from credit_accounts where account_id = $1"
    seen = [await owner.fetchval(has_endpoints, account_id)]
    first, second = [await new_endpoint(owner, account_id) for _ in range(2)]
    for endpoint_id in (first, second):
        seen.append(await owner.fetchval(has_endpoints, account_id))
        await owner.execute("select webhooks.remove_endpoint($1, $2)", account_id, endpoint_id)

    assert [*seen, await owner.fetchval(has_endpoints, account_id)] == [False, True, True, False]


# Deliveries


async def test_claimed_delivery_is_exclusive_until_its_lease_ends(owner, outbox, account_id):
    await emitted(owner, account_id)

    (due,) = await claimed_of(outbox, account_id)
    assert await claimed_of(outbox, account_id) == []
    await owner.execute(
        "update webhook_deliveries set due_at = now(), claimed_until = now() where account_id = $1",
        account_id,
    )
    (again,) = await claimed_of(outbox, account_id)

    assert (due.type, json.loads(due.data)) == ("batch.completed", {"n": 0})
    assert again.id == due.id
    assert not await outbox.settle(due, *RETRIED)
    assert (
        await owner.fetchval("select failing_since from webhook_endpoints where account_id = $1", account_id)
        is None
    )
    assert await outbox.settle(again, *DELIVERED)
    assert [row["attempts"] for row in await deliveries(owner, account_id)] == [1]


async def test_delivery_is_recorded_with_its_attempts(owner, outbox, account_id):
    await emitted(owner, account_id)
    (due,) = await claimed_of(outbox, account_id)
    await outbox.settle(due, *RETRIED)
    (waiting,) = await deliveries(owner, account_id)
    assert await claimed_of(outbox, account_id) == []
    await owner.execute("update webhook_deliveries set due_at = now() where account_id = $1", account_id)
    (due,) = await claimed_of(outbox, account_id)
    await outbox.settle(due, *DELIVERED)

    (row,) = await deliveries(owner, account_id)
    log = await owner.fetch(
        "select * from webhook_attempts where account_id = $1 order by number", account_id
    )
    assert (waiting["status"], waiting["failures"], waiting["last_error"]) == ("pending", 1, "timed_out")
    assert timedelta(minutes=4) < waiting["due_at"] - waiting["last_attempt_at"] <= timedelta(minutes=5)
    assert (row["status"], row["attempts"], row["failures"]) == ("delivered", 2, 0)
    assert (row["last_status"], row["last_error"]) == (200, None)
    assert row["delivered_at"] == row["last_attempt_at"]
    assert [(one["number"], one["http_status"], one["error"]) for one in log] == [
        *((1, None, "timed_out"), (2, 200, None))
    ]


async def test_endpoint_is_failing_from_its_first_failure_to_its_next_success(owner, outbox, account_id):
    failing_since = "select failing_since from webhook_endpoints where account_id = $1"
    await emitted(owner, account_id, 3)
    first, second, third = await claimed_of(outbox, account_id)

    await outbox.settle(first, *RETRIED)
    since = await owner.fetchval(failing_since, account_id)
    await outbox.settle(second, *RETRIED)
    still = await owner.fetchval(failing_since, account_id)
    await outbox.settle(third, *DELIVERED)

    assert since is not None
    assert still == since
    assert await owner.fetchval(failing_since, account_id) is None


async def test_endpoint_that_is_gone_is_disabled_with_its_pending_deliveries(owner, outbox, account_id):
    await emitted(owner, account_id, 3)
    first, second, third = await claimed_of(outbox, account_id)
    await emitted(owner, account_id)

    await outbox.settle(
        first, DeliveryResponse(http_status=410), DeliveryDecision(status="failed", disables="gone")
    )
    await outbox.settle(second, *RETRIED)
    await outbox.settle(third, *DELIVERED)

    endpoint = await owner.fetchrow("select * from webhook_endpoints where account_id = $1", account_id)
    assert (endpoint["status"], endpoint["disabled_reason"]) == ("disabled", "gone")
    found = [row["status"] for row in await deliveries(owner, account_id)]
    assert found == ["failed", "failed", "delivered", "failed"]
    assert await claimed_of(outbox, account_id) == []


async def test_deliveries_of_a_deleted_account_are_not_claimed(owner, outbox, account_id):
    await emitted(owner, account_id)
    await owner.execute("update accounts set deleted_at = now() where id = $1", account_id)

    assert await claimed_of(outbox, account_id) == []


async def test_delivery_slots_are_shared_fairly_between_accounts(owner, outbox):
    """One account floods three hosts; others need one delivery each, some to the first one's host."""
    key = uuid.uuid4().hex
    flooder = await listening(owner, url=f"https://a.{key}")
    for host in ("b", "c"):
        await new_endpoint(owner, flooder, url=f"https://{host}.{key}")
    await emitted(owner, flooder, 20)
    others = [await listening(owner, url=f"https://{host}.{key}") for host in ("a", "d", "e")]
    for account_id in others:
        await emitted(owner, account_id)

    first = await claimed_of(outbox, flooder, *others, deliveries_max=4)
    second = await claimed_of(outbox, flooder, *others)
    third = await claimed_of(outbox, flooder, *others)

    assert {due.account_id for due in first} == {flooder, *others}
    assert [due.account_id for due in second] == [flooder] * 4
    assert third == []
    await outbox.settle(first[0], *DELIVERED)
    for due in first + second:
        await outbox.settle(due, *DELIVERED)
    assert len(await claimed_of(outbox, flooder)) == 5


async def test_concurrent_deliveries_to_one_host_are_limited(owner, outbox):
    url = f"https://{uuid.uuid4().hex}.example"
    accounts = [await listening(owner, url=url) for _ in range(6)]
    for account_id in accounts:
        await emitted(owner, account_id, 2)

    claimed = await claimed_of(outbox, *accounts)

    assert len(claimed) == 10
    assert {due.account_id for due in claimed} == set(accounts)
    assert await claimed_of(outbox, *accounts) == []


async def test_one_account_cannot_occupy_all_delivery_slots_of_a_shared_host(owner, outbox):
    url = f"https://{uuid.uuid4().hex}.example"
    flooder, other = [await listening(owner, url=url) for _ in range(2)]
    await emitted(owner, flooder, 20)
    assert len(await claimed_of(outbox, flooder)) == 5
    await emitted(owner, other)

    assert [due.account_id for due in await claimed_of(outbox, flooder, other)] == [other]


async def test_claim_during_another_claim_gets_nothing(addresses, owner, outbox):
    """The other claim is not committed, so the number of active deliveries to a host is unknown."""
    url = f"https://{uuid.uuid4().hex}.example"
    account_id = await listening(owner, url=url)
    await emitted(owner, account_id, 5)
    rival = await asyncpg.connect(addresses.owner)
    async with rival.transaction():
        await rival.fetch("select * from webhooks.claim(1000, 5, $1)", LEASE)
        latecomer = await listening(owner, url=url)
        await emitted(owner, latecomer)

        assert await claimed_of(outbox, account_id, latecomer) == []
    await rival.close()
    assert [due.account_id for due in await claimed_of(outbox, account_id, latecomer)] == [latecomer]


async def test_concurrent_claims_get_different_deliveries(owner, database):
    accounts = [await listening(owner, url=f"https://{uuid.uuid4().hex}") for _ in range(4)]
    for account_id in accounts:
        await emitted(owner, account_id, 3)
    outboxes = [PostgresOutbox(database.admin("claims at once")) for _ in range(6)]

    claimed = []
    while len(claimed) < 12:
        for found in await asyncio.gather(
            *(claimed_of(outbox, *accounts, deliveries_max=2) for outbox in outboxes)
        ):
            claimed += found

    assert len({due.id for due in claimed}) == len(claimed) == 12


async def test_removal_of_an_endpoint_does_not_fail_a_concurrent_message(addresses, owner, account_id):
    remover, teller = [await asyncpg.connect(addresses.owner) for _ in range(2)]
    removal = remover.transaction()
    await removal.start()
    await remover.execute(
        "select webhooks.remove_endpoint(account_id, id) from webhook_endpoints where account_id = $1",
        account_id,
    )
    telling = asyncio.create_task(emitted(teller, account_id))
    waits = "select wait_event_type = 'Lock' from pg_stat_activity where pid = $1"
    await until(lambda: owner.fetchval(waits, teller.get_server_pid()))
    await removal.commit()

    await telling

    assert await messages_of(owner, account_id) == []
    for connection in (remover, teller):
        await connection.close()


async def finish_runs(connection, account_id):
    for number in range(40):
        run_id = await started(connection, account_id, credits_held=1)
        await connection.execute(FINISH, account_id, run_id, "completed", None, 1)
        await connection.execute("select ledger.spend($1, 1, $2, 'analysis')", account_id, f"s{number}")


async def come_and_go(connection, account_id):
    for _ in range(40):
        endpoint_id = await new_endpoint(connection, account_id)
        await connection.execute("select webhooks.remove_endpoint($1, $2)", account_id, endpoint_id)


async def settle(outbox, account_id):
    for _ in range(40):
        for due in await claimed_of(outbox, account_id):
            await outbox.settle(due, *RETRIED)


async def test_concurrent_messages_removals_and_settlements_do_not_deadlock(addresses, owner, outbox):
    """Each locks the rows of the credits, the endpoint and the delivery in the same order."""
    account_id = (await make_tenant(owner)).account_id
    await owner.execute("select ledger.grant_credits($1, 1000, 'h', 'admin_grant')", account_id)
    first, second, third = [await asyncpg.connect(addresses.owner) for _ in range(3)]

    await asyncio.gather(
        finish_runs(first, account_id),
        emitted(second, account_id, 40),
        come_and_go(third, account_id),
        settle(outbox, account_id),
    )

    for connection in (first, second, third):
        await connection.close()
    assert (
        await owner.fetchval(
            "select count(*) from runs where account_id = $1 and status = 'completed'", account_id
        )
        == 40
    )
    assert await owner.fetch("select * from ledger.audit() where account_id = $1", account_id) == []


async def test_old_messages_are_purged_with_their_deliveries(owner, account_id):
    await emitted(owner, account_id, 2)
    await owner.execute(
        "update webhook_messages set created_at = now() - interval '31 days'"
        " where account_id = $1 and data = '{\"n\": 0}'",
        account_id,
    )

    removed = await owner.fetchval("select scheduling.purge('public.webhook_messages', '30 days', 10)")

    assert removed == 1
    assert [data for _, data in await messages_of(owner, account_id)] == [{"n": 1}]
    assert len(await deliveries(owner, account_id)) == 1
