"""API keys: creation, scopes, caps, rotation and revocation."""

import asyncio
import dataclasses
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from core.wiring.application import build
from features.auth.application.api_keys import VALID_MAX
from tests.support import until
from tests.support.problems import assert_problem
from tests.support.sql_ledger import LedgerRejection, SqlLedger

BODY = {"name": "Nightly import", "scopes": ["credits:read"]}


@pytest.fixture
def ledger(database):
    return SqlLedger(database.admin("test"))


def hold(ledger, ada, key, credits_held, reference=None):
    return ledger.place_hold(
        uuid.UUID(ada.account_id), credits_held, reference or uuid.uuid4().hex, api_key_id=key.user_id
    )


async def test_key_is_shown_once_and_stored_as_a_hash(ada, owner):
    made = await ada.post("/v1/api-keys", BODY)
    key = made.json()
    shown = await ada.get(made.headers["location"])

    assert made.status_code == 201
    assert key["key"].startswith("osl_live_")
    assert key["key"].startswith(key["hint"].removesuffix("..."))
    assert "key" not in shown.json()
    assert shown.json() == {
        **{name: value for name, value in key.items() if name != "key"},
        "credits_spent_this_month": 0,
    }
    row = await owner.fetchval(
        "select to_jsonb(k)::text from api_keys as k where id = $1", uuid.UUID(key["id"])
    )
    assert key["key"][-38:] not in row
    assert key["key"][-38:-6] not in row


async def test_key_is_limited_to_its_scopes(ada, key_of):
    reader = await key_of(ada, "credits:read")

    assert (await reader.get("/v1/credits/balance")).json()["account_id"] == ada.account_id
    refused = await reader.get("/v1/business-profiles")
    assert_problem(refused, 403, "scope_missing")
    assert refused.json()["facts"] == {"permission": "business_profiles:read"}
    assert_problem(await reader.get(f"/v1/accounts/{ada.account_id}/members"), 403, "scope_missing")
    assert_problem(await reader.post("/v1/api-keys", BODY), 403, "scope_missing")


@pytest.mark.parametrize("scope", ["members:manage", "api_keys:manage", "account:delete", "everything", ""])
async def test_scope_that_manages_members_or_keys_is_rejected(ada, scope):
    answer = await ada.post("/v1/api-keys", {**BODY, "scopes": [scope]})

    assert_problem(answer, 400, "invalid_request")


async def test_key_cannot_choose_another_account(ada, stranger, key_of):
    key = await key_of(ada)

    assert (await key.choosing(ada.account_id).get("/v1/credits/balance")).status_code == 200
    assert_problem(
        await key.choosing(stranger.account_id).get("/v1/credits/balance"), 404, "account_not_found"
    )


async def test_key_with_write_scope_writes_and_is_recorded_as_creator(ada, key_of):
    key = await key_of(ada, "business_profiles:write", "business_profiles:read")

    made = await key.post("/v1/business-profiles", {"name": "By a key"})

    assert made.status_code == 201
    assert made.json()["created_by"] == f"api_key:{key.user_id}"


async def test_keys_are_paged_newest_first_including_revoked_ones(ada):
    for name in ("one", "two", "three"):
        made = (await ada.post("/v1/api-keys", {**BODY, "name": name})).json()
    await ada.delete(f"/v1/api-keys/{made['id']}")

    first = (await ada.get("/v1/api-keys?limit=2")).json()
    second = (await ada.get(f"/v1/api-keys?limit=2&cursor={first['next_cursor']}")).json()

    assert [key["name"] for key in first["items"] + second["items"]] == ["three", "two", "one"]
    assert first["items"][0]["revoked_at"] is not None
    assert second["next_cursor"] is None


async def test_revoked_key_is_rejected_by_every_process_within_five_seconds(ada, key_of, client_of, place):
    key = await key_of(ada)
    async with build(place) as another:
        clients = (key.client, client_of(another))
        for client in clients:
            assert (await client.get("/v1/auth/verify", headers=key.headers)).status_code == 200

        answers = [await ada.delete(f"/v1/api-keys/{key.user_id}") for _ in range(2)]

        assert [answer.status_code for answer in answers] == [204, 204]
        for client in clients:
            # The database rejects the key at once, although a process may cache it.
            balance = await client.get("/v1/credits/balance", headers=key.headers)
            assert balance.status_code in (401, 404)

            async def is_refused(client=client):
                return (await client.get("/v1/auth/verify", headers=key.headers)).status_code == 401

            await until(is_refused, timeout_s=5)


async def test_rotated_key_stays_valid_for_the_overlap(ada, key_of, client):
    old = await key_of(ada, "credits:read", project="proj_1", credits_per_month_max=7)

    made = await ada.post(f"/v1/api-keys/{old.user_id}/rotate", {"overlap_seconds": 600})

    new = made.json()
    assert made.status_code == 201
    assert (new["project"], new["credits_per_month_max"], new["scopes"]) == ("proj_1", 7, ["credits:read"])
    headers = {"Authorization": f"Bearer {new['key']}"}
    assert (await client.get("/v1/credits/balance", headers=headers)).status_code == 200
    assert (await old.get("/v1/credits/balance")).status_code == 200
    expires_at = datetime.fromisoformat((await ada.get(f"/v1/api-keys/{old.user_id}")).json()["expires_at"])
    assert timedelta(minutes=9) < expires_at - datetime.now(UTC) <= timedelta(minutes=10)


async def test_rotation_without_overlap_ends_the_old_key_at_once(ada, key_of):
    old = await key_of(ada)

    await ada.post(f"/v1/api-keys/{old.user_id}/rotate", {"overlap_seconds": 0})

    assert (await old.get("/v1/credits/balance")).status_code in (401, 404)
    assert_problem(await ada.post(f"/v1/api-keys/{old.user_id}/rotate", {}), 409, "api_key_ended")
    assert_problem(await ada.patch(f"/v1/api-keys/{old.user_id}", {"name": "x"}), 409, "api_key_ended")


async def test_patch_changes_only_the_sent_fields(ada, key_of):
    key = await key_of(ada, credits_per_month_max=5, project="proj_1")

    capless = await ada.patch(f"/v1/api-keys/{key.user_id}", {"credits_per_month_max": None})
    renamed = await ada.patch(f"/v1/api-keys/{key.user_id}", {"name": "Renamed"})

    assert (capless.json()["credits_per_month_max"], capless.json()["project"]) == (None, "proj_1")
    assert (renamed.json()["name"], renamed.json()["scopes"]) == ("Renamed", ["credits:read"])


async def test_expiry_in_the_past_is_rejected(ada):
    answer = await ada.post("/v1/api-keys", {**BODY, "expires_at": datetime.now(UTC).isoformat()})

    assert_problem(answer, 422, "expiry_invalid")


async def test_expired_key_is_rejected(ada, key_of, owner):
    key = await key_of(ada, expires_at=(datetime.now(UTC) + timedelta(days=1)).isoformat())
    await owner.execute("update api_keys set expires_at = now() where id = $1", key.user_id)

    assert_problem(await key.get("/v1/credits/balance"), 401, "api_key_invalid")


async def test_last_use_is_recorded(ada, key_of):
    key = await key_of(ada)
    await key.get("/v1/credits/balance")

    async def noted():
        return (await ada.get(f"/v1/api-keys/{key.user_id}")).json()["last_used_at"]

    assert await until(noted)


async def test_number_of_valid_keys_is_limited_for_concurrent_requests(ada, owner):
    account_id = uuid.UUID(ada.account_id)
    await owner.execute(
        """
        insert into api_keys (account_id, id, family_id, name, mode, secret_hash, scopes, created_by)
        select $1, gen_random_uuid(), gen_random_uuid(), 'k', 'live', sha256(n::text::bytea),
            array['credits:read'], $1
        from generate_series(1, $2) as n
        """,
        account_id,
        VALID_MAX - 3,
    )

    answers = await asyncio.gather(*(ada.post("/v1/api-keys", BODY) for _ in range(8)))

    assert sorted(answer.status_code for answer in answers) == [201] * 3 + [402] * 5
    assert_problem(next(one for one in answers if one.status_code == 402), 402, "api_keys_limit")


async def test_member_cannot_access_keys(ada, join, key_of):
    member, key = await join(ada.account_id, "member"), await key_of(ada)

    for answer in (
        await member.get("/v1/api-keys"),
        await member.get(f"/v1/api-keys/{key.user_id}"),
        await member.post("/v1/api-keys", BODY),
        await member.post(f"/v1/api-keys/{key.user_id}/rotate", {}),
        await member.patch(f"/v1/api-keys/{key.user_id}", {"name": "x"}),
        await member.delete(f"/v1/api-keys/{key.user_id}"),
    ):
        assert_problem(answer, 403, "permission_missing")


async def test_test_key_places_no_hold(ada, key_of, ledger):
    key = await key_of(ada, mode="test")

    with pytest.raises(LedgerRejection, match="test_key"):
        await hold(ledger, ada, key, 1)

    assert (await ada.get("/v1/credits/balance")).json()["credits_held"] == 0


async def test_monthly_spending_of_a_key_stays_within_its_cap(ada, key_of, ledger):
    key = await key_of(ada, credits_per_month_max=10)
    await hold(ledger, ada, key, 6, "first")

    with pytest.raises(LedgerRejection, match="key_capped") as rejection:
        await hold(ledger, ada, key, 5)
    await hold(ledger, ada, key, 4)

    assert rejection.value.row["credits_moved"] == 10
    assert (await ada.get(f"/v1/api-keys/{key.user_id}")).json()["credits_spent_this_month"] == 10


async def test_released_unspent_and_refunded_credits_do_not_count_against_the_cap(ada, key_of, ledger):
    key = await key_of(ada, credits_per_month_max=10)
    account_id = uuid.UUID(ada.account_id)
    await hold(ledger, ada, key, 10, "released")
    await ledger.release_hold(account_id, reference="released")
    await hold(ledger, ada, key, 10, "settled")
    await ledger.settle_hold(account_id, reference="settled", credits_spent=4)
    await ledger.refund(account_id, "settled", 1, "r")

    spent = (await ada.get(f"/v1/api-keys/{key.user_id}")).json()["credits_spent_this_month"]

    assert spent == 3
    assert (await hold(ledger, ada, key, 7)).credits_moved == 7


async def test_cap_holds_for_concurrent_holds_and_after_a_rotation(ada, key_of, ledger):
    old = await key_of(ada, credits_per_month_max=10)
    new = (await ada.post(f"/v1/api-keys/{old.user_id}/rotate", {})).json()
    keys = [old, type(old)(old.client, "", {})]
    keys[1].user_id = uuid.UUID(new["id"])

    outcomes = await asyncio.gather(
        *(hold(ledger, ada, keys[number % 2], 1) for number in range(24)), return_exceptions=True
    )

    rejected = [str(outcome) for outcome in outcomes if isinstance(outcome, LedgerRejection)]
    assert rejected == ["key_capped"] * 14
    assert len([outcome for outcome in outcomes if not isinstance(outcome, Exception)]) == 10


async def test_spending_of_last_month_does_not_count(ada, key_of, ledger, owner):
    key = await key_of(ada, credits_per_month_max=10)
    await hold(ledger, ada, key, 10)
    await owner.execute(
        "update credit_holds set placed_at = date_trunc('month', now(), 'UTC') - interval '1 second'"
        " where api_key_id = $1",
        key.user_id,
    )

    assert (await hold(ledger, ada, key, 10)).credits_moved == 10


async def test_repeated_hold_counts_once(ada, key_of, ledger):
    key = await key_of(ada, credits_per_month_max=10)

    first, again = await hold(ledger, ada, key, 10, "same"), await hold(ledger, ada, key, 10, "same")

    assert (first.repeated, again.repeated) == (False, True)


class Untouchable:
    """Fails the test on any access."""

    def __getattr__(self, name):
        raise AssertionError(f"asked for {name}")


async def test_mistyped_key_costs_no_query(ada, key_of, application, client_of):
    text = (await key_of(ada)).headers["Authorization"]
    authenticator = dataclasses.replace(
        application.dependencies["authenticator"],
        sign_ups=Untouchable(),
        keys=Untouchable(),
        memberships=Untouchable(),
    )
    client = client_of(
        dataclasses.replace(application, rate_limits=Untouchable()).replacing(authenticator=authenticator)
    )

    for position in (-1, -20, -45):
        other = "1" if text[position] != "1" else "2"
        mistyped = text[:position] + other + (text[position + 1 :] if position != -1 else "")
        answer = await client.get("/v1/credits/balance", headers={"Authorization": mistyped})
        assert_problem(answer, 401, "api_key_invalid")
