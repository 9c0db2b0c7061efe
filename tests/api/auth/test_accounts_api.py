"""Accounts: creating, renaming, listing, deleting and restoring."""

import asyncio
import uuid

import pytest

from features.auth.application.accounts import OWNED_MAX
from tests.support.problems import assert_problem


async def test_creator_of_an_account_is_its_owner(ada):
    answer = await ada.post("/v1/accounts", {"name": "Corner   bakery "})

    assert answer.status_code == 201
    account = answer.json()
    assert (account["name"], account["role"], account["plan"]) == ("Corner bakery", "owner", "free")
    assert answer.headers["location"] == f"/v1/accounts/{account['id']}"
    assert (await ada.get(answer.headers["location"])).json() == account


async def test_additional_account_has_no_credits(ada):
    account = (await ada.post("/v1/accounts", {"name": "Second"})).json()

    balance = (await ada.choosing(account["id"]).get("/v1/credits/balance")).json()

    assert (balance["account_id"], balance["credits_available"]) == (account["id"], 0)


async def test_header_chooses_the_account_and_is_required_with_two_accounts(ada):
    second = (await ada.post("/v1/accounts", {"name": "Second"})).json()["id"]

    chosen = [(await ada.choosing(one).get("/v1/credits/balance")).json() for one in (ada.account_id, second)]

    assert [balance["account_id"] for balance in chosen] == [ada.account_id, second]
    assert_problem(await ada.get("/v1/credits/balance"), 422, "account_not_chosen")


async def test_accounts_are_paged_newest_first(ada):
    names = ["first", "second", "third"]
    for name in names:
        await ada.post("/v1/accounts", {"name": name})

    first = (await ada.get("/v1/accounts?limit=2")).json()
    second = (await ada.get(f"/v1/accounts?limit=2&cursor={first['next_cursor']}")).json()

    assert [account["name"] for account in first["items"]] == ["third", "second"]
    assert [account["id"] for account in second["items"]][1] == ada.account_id
    assert second["next_cursor"] is None


async def test_number_of_owned_accounts_is_limited_for_concurrent_requests(ada, owner):
    answers = await asyncio.gather(
        *(ada.post("/v1/accounts", {"name": f"n{number}"}) for number in range(OWNED_MAX + 5))
    )

    made = [answer for answer in answers if answer.status_code == 201]
    assert len(made) == OWNED_MAX - 1
    refused = next(answer for answer in answers if answer.status_code != 201)
    assert_problem(refused, 402, "accounts_limit")
    assert refused.json()["facts"] == {"limit": OWNED_MAX}
    assert (
        await owner.fetchval("select count(*) from memberships where user_id = $1", ada.user_id) == OWNED_MAX
    )


@pytest.mark.parametrize(("role", "status"), [("admin", 200), ("member", 403)])
async def test_only_owners_and_admins_rename(ada, join, role, status):
    joined = await join(ada.account_id, role)

    answer = await joined.patch(f"/v1/accounts/{ada.account_id}", {"name": "Renamed"})

    assert answer.status_code == status
    assert (await ada.get(f"/v1/accounts/{ada.account_id}")).json()["name"] == (
        "Renamed" if status == 200 else ada.email.partition("@")[0]
    )


@pytest.mark.parametrize("name", [" ", None])
async def test_invalid_name_is_rejected(ada, name):
    answer = await ada.post("/v1/accounts", {"name": name})

    assert_problem(answer, 400, "invalid_request")


async def test_only_owners_delete(ada, join):
    admin = await join(ada.account_id, "admin")

    assert_problem(await admin.delete(f"/v1/accounts/{ada.account_id}"), 403, "permission_missing")
    assert (await ada.get("/v1/credits/balance")).status_code == 200


async def test_deleted_account_is_hidden_at_once_from_all_members_and_keys(ada, join, key_of):
    member = await join(ada.account_id, "admin")
    key = await key_of(ada, "credits:read", "business_profiles:write")
    assert (await key.get("/v1/credits/balance")).status_code == 200

    answer = await ada.delete(f"/v1/accounts/{ada.account_id}")

    assert (answer.status_code, answer.content) == (204, b"")
    assert_problem(await member.get("/v1/credits/balance"), 404, "account_not_found")
    assert_problem(await key.get("/v1/credits/balance"), 404, "account_not_found")
    assert_problem(await key.post("/v1/business-profiles", {"name": "x"}), 404, "account_not_found")
    assert_problem(await ada.get(f"/v1/accounts/{ada.account_id}"), 404, "account_not_found")
    assert_problem(await ada.delete(f"/v1/accounts/{ada.account_id}"), 404, "account_not_found")
    assert (await ada.get("/v1/accounts")).json()["items"] == []


async def test_owner_restores_the_account_with_its_content(ada, join):
    member = await join(ada.account_id, "member")
    await ada.delete(f"/v1/accounts/{ada.account_id}")
    deleted = (await ada.get("/v1/accounts?deleted=true")).json()["items"]

    restored = await ada.post(f"/v1/accounts/{ada.account_id}/restore")

    assert [account["id"] for account in deleted] == [ada.account_id]
    assert deleted[0]["deleted_at"] is not None
    assert (restored.status_code, restored.json()["deleted_at"]) == (200, None)
    assert (await ada.get("/v1/credits/balance")).json()["credits_available"] == 25
    assert (await member.get("/v1/credits/balance")).status_code == 200
    assert (await ada.get("/v1/accounts?deleted=true")).json()["items"] == []


@pytest.mark.parametrize(("days", "status"), [(29, 200), (30, 404), (31, 404)])
async def test_account_can_be_restored_for_thirty_days(ada, owner, days, status):
    await ada.delete(f"/v1/accounts/{ada.account_id}")
    await owner.execute(
        "update accounts set deleted_at = now() - make_interval(days => $2) where id = $1",
        uuid.UUID(ada.account_id),
        days,
    )

    answer = await ada.post(f"/v1/accounts/{ada.account_id}/restore")

    assert answer.status_code == status
    assert len((await ada.get("/v1/accounts")).json()["items"]) == (status == 200)


async def test_only_an_owner_restores(ada, join, stranger):
    admin = await join(ada.account_id, "admin")
    await ada.delete(f"/v1/accounts/{ada.account_id}")

    for caller in (admin, stranger):
        answer = await caller.post(f"/v1/accounts/{ada.account_id}/restore")
        assert_problem(answer, 404, "account_not_found")


async def test_api_keys_cannot_create_or_list_accounts(ada, key_of):
    key = await key_of(ada, "account:read")

    assert_problem(await key.post("/v1/accounts", {"name": "x"}), 403, "users_only")
    assert_problem(await key.get("/v1/accounts"), 403, "users_only")
    assert (await key.get(f"/v1/accounts/{ada.account_id}")).json()["id"] == ada.account_id


async def test_deleted_accounts_are_paged(ada):
    made = [(await ada.post("/v1/accounts", {"name": name})).json()["id"] for name in "abc"]
    for account_id in made:
        assert (await ada.delete(f"/v1/accounts/{account_id}")).status_code == 204

    first = (await ada.get("/v1/accounts?deleted=true&limit=2")).json()
    second = (await ada.get(f"/v1/accounts?deleted=true&limit=2&cursor={first['next_cursor']}")).json()

    assert [account["id"] for account in first["items"] + second["items"]] == made[::-1]
    assert second["next_cursor"] is None
