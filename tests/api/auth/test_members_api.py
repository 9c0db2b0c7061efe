"""Members of an account: listing, role changes and removal."""

import asyncio
import uuid

import asyncpg
import pytest

from tests.support import until
from tests.support.problems import assert_problem

WAITING = """
select count(*) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and query like '%public.accounts%'
"""


def members_of(person):
    return f"/v1/accounts/{person.account_id}/members"


async def test_members_see_each_other(ada, join):
    viewer = await join(ada.account_id, "viewer")

    members = (await viewer.get(members_of(ada))).json()["items"]

    assert [(one["email"], one["role"]) for one in members] == [
        (ada.email, "owner"),
        (viewer.email, "viewer"),
    ]


async def test_members_are_paged(ada, join):
    for _ in range(3):
        await join(ada.account_id, "member")

    first = (await ada.get(f"{members_of(ada)}?limit=3")).json()
    second = (await ada.get(f"{members_of(ada)}?limit=3&cursor={first['next_cursor']}")).json()

    assert (len(first["items"]), len(second["items"]), second["next_cursor"]) == (3, 1, None)
    assert len({one["user_id"] for one in first["items"] + second["items"]}) == 4


async def test_role_change_takes_effect_at_once(ada, join):
    member = await join(ada.account_id, "member")
    assert_problem(await member.get("/v1/api-keys"), 403, "permission_missing")

    answer = await ada.patch(f"{members_of(ada)}/{member.user_id}", {"role": "admin"})
    as_admin = await member.get("/v1/api-keys")
    await ada.patch(f"{members_of(ada)}/{member.user_id}", {"role": "viewer"})
    as_viewer = await member.get("/v1/api-keys")

    assert (answer.status_code, answer.json()["role"], answer.json()["email"]) == (200, "admin", member.email)
    assert as_admin.status_code == 200
    assert_problem(as_viewer, 403, "permission_missing")
    assert as_viewer.json()["facts"] == {"permission": "api_keys:read", "role": "viewer"}


async def test_removed_member_loses_access_at_once(ada, join):
    admin = await join(ada.account_id, "admin")
    assert (await admin.get("/v1/api-keys")).status_code == 200

    answer = await ada.delete(f"{members_of(ada)}/{admin.user_id}")

    assert (answer.status_code, answer.json()) == (200, {"api_keys": [], "invitations": []})
    assert_problem(await admin.get("/v1/api-keys"), 404, "account_not_found")
    assert_problem(await admin.get("/v1/credits/balance"), 404, "account_not_found")
    assert_problem(await admin.get(members_of(ada)), 404, "account_not_found")


async def test_viewer_can_leave_but_cannot_remove_others(ada, join):
    viewer, other = await join(ada.account_id, "viewer"), await join(ada.account_id, "viewer")

    refused = await viewer.delete(f"{members_of(ada)}/{other.user_id}")
    left = await viewer.delete(f"{members_of(ada)}/{viewer.user_id}")

    assert_problem(refused, 403, "permission_missing")
    assert left.status_code == 200
    assert len((await ada.get(members_of(ada))).json()["items"]) == 2


async def test_last_owner_cannot_leave(ada, join):
    await join(ada.account_id, "admin")

    assert_problem(await ada.delete(f"{members_of(ada)}/{ada.user_id}"), 409, "last_owner")


async def test_two_owners_who_leave_concurrently_leave_one_owner(ada, join, owner):
    second = (await join(ada.account_id, "owner")).choosing(ada.account_id)

    answers = await asyncio.gather(
        ada.delete(f"{members_of(ada)}/{ada.user_id}"), second.delete(f"{members_of(ada)}/{second.user_id}")
    )

    assert sorted(answer.status_code for answer in answers) == [200, 409]
    owners = "select count(*) from memberships where account_id = $1 and role = 'owner'"
    assert await owner.fetchval(owners, uuid.UUID(ada.account_id)) == 1


async def test_admin_cannot_remove_an_owner(ada, join):
    admin = await join(ada.account_id, "admin")

    assert_problem(await admin.delete(f"{members_of(ada)}/{ada.user_id}"), 403, "owners_only")


async def test_foreign_and_unknown_accounts_get_the_same_response(ada, stranger):
    foreign = await ada.get(members_of(stranger))
    unknown = await ada.get(f"/v1/accounts/{uuid.uuid4()}/members")

    assert_problem(foreign, 404, "account_not_found")
    assert {**foreign.json(), "request_id": ""} == {**unknown.json(), "request_id": ""}


async def test_unknown_member_is_not_found(ada, stranger):
    answer = await ada.patch(f"{members_of(ada)}/{stranger.user_id}", {"role": "viewer"})

    assert_problem(answer, 404, "member_not_found")


async def test_unknown_role_is_rejected(ada, join):
    member = await join(ada.account_id, "member")

    answer = await ada.patch(f"{members_of(ada)}/{member.user_id}", {"role": "god"})

    assert_problem(answer, 400, "invalid_request")


@pytest.mark.parametrize(("choice", "status"), [("", 404), ("?api_keys=keep", 200)])
async def test_keys_of_a_removed_member_are_revoked_unless_kept(ada, join, key_of, choice, status):
    admin = await join(ada.account_id, "admin")
    made, revoked, of_ada = await key_of(admin), await key_of(admin), await key_of(ada)
    await ada.delete(f"/v1/api-keys/{revoked.user_id}")

    answer = await ada.delete(f"{members_of(ada)}/{admin.user_id}{choice}")

    (affected,) = answer.json()["api_keys"]
    assert (affected["id"], affected["revoked_at"] is None) == (str(made.user_id), status == 200)
    assert (await ada.get(f"/v1/api-keys/{made.user_id}")).json().items() >= affected.items()
    # The database rejects a revoked key at once; a process may cache it for three seconds.
    assert (await made.get("/v1/credits/balance")).status_code in {status, 401 if status == 404 else 200}
    assert (await of_ada.get("/v1/credits/balance")).status_code == 200


@pytest.mark.battery
async def test_key_of_a_removed_member_is_rejected_within_five_seconds(ada, join, key_of):
    admin = await join(ada.account_id, "admin")
    key = await key_of(admin)
    assert (await key.get("/v1/auth/verify")).status_code == 200

    await admin.delete(f"{members_of(ada)}/{admin.user_id}")

    async def is_refused():
        return (await key.get("/v1/auth/verify")).status_code == 401

    await until(is_refused, timeout_s=5)


async def test_unknown_choice_for_keys_is_rejected(ada, join):
    admin = await join(ada.account_id, "admin")

    answer = await ada.delete(f"{members_of(ada)}/{admin.user_id}?api_keys=forget")

    assert_problem(answer, 400, "invalid_request")
    assert (await admin.get("/v1/api-keys")).status_code == 200


async def test_member_removed_during_key_creation_gets_no_key(ada, join, addresses, owner):
    admin = await join(ada.account_id, "admin")
    connection, account_id = await asyncpg.connect(addresses.owner), uuid.UUID(ada.account_id)
    async with connection.transaction():
        await connection.execute("select from accounts where id = $1 for no key update", account_id)
        making = asyncio.create_task(admin.post("/v1/api-keys", {"name": "k", "scopes": ["credits:read"]}))
        await until(lambda: owner.fetchval(WAITING))
        await connection.execute("delete from memberships where user_id = $1", admin.user_id)
    await connection.close()

    assert_problem(await making, 404, "account_not_found")
    assert (await ada.get("/v1/api-keys")).json()["items"] == []
