"""Business slice end to end: the real app on the real database, over HTTP."""

import asyncio
import hashlib
import uuid

import pytest

from tests.api.business.conftest import PROFILE_BODY_EXAMPLE
from tests.api.business.urls import PROFILES, listed
from tests.support.problems import assert_problem


async def test_profile_is_created_with_its_location_and_read_back(client, create, headers, signed_up):
    created = await create(**PROFILE_BODY_EXAMPLE)

    read = await client.get(created.headers["location"], headers=headers)
    assert (created.status_code, read.status_code) == (201, 200)
    assert created.headers["etag"] == read.headers["etag"] == '"1"'
    assert created.json() == read.json()
    assert read.json().items() >= PROFILE_BODY_EXAMPLE.items()
    assert (read.json()["account_id"], read.json()["version"]) == (str(signed_up[1]), 1)
    assert read.json()["created_by"].startswith("user:")
    assert read.json()["completeness"] == {"percent": 100, "missing": [], "is_complete": True}
    assert read.json()["created_at"] == read.json()["updated_at"]
    assert read.json()["deleted_at"] is None


async def test_name_is_enough_and_other_fields_are_listed_as_missing(create):
    profile = (await create()).json()

    assert profile["ideal_customer"]["niches"] == []
    assert profile["completeness"]["percent"] == 10
    assert {"offering", "ideal_customer.niches"} <= set(profile["completeness"]["missing"])


async def test_an_account_without_profiles_has_an_empty_list(client, headers):
    answer = await client.get(PROFILES, headers=headers)

    assert answer.json() == {"items": [], "next_cursor": None}


async def test_pages_are_newest_first_without_gap_or_repetition(client, create, headers):
    ids = [(await create(name=f"Number {number}")).json()["id"] for number in range(5)]

    seen, cursor = [], ""
    while cursor is not None:
        query = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = (await client.get(PROFILES, headers=headers, params=query)).json()
        assert len(page["items"]) <= 2
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]

    assert seen == ids[::-1]


async def test_profiles_created_simultaneously_are_paged_once_each(client, create, headers, owner, signed_up):
    ids = {(await create()).json()["id"] for _ in range(3)}
    await owner.execute("update business_profiles set created_at = now() where account_id = $1", signed_up[1])

    first = (await client.get(PROFILES, headers=headers, params={"limit": 2})).json()
    rest = await listed(client, headers, limit=2, cursor=first["next_cursor"])

    assert {item["id"] for item in first["items"]} | set(rest) == ids
    assert len(rest) == 1


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "deleted=maybe", "cursor=!!!", "cursor=703138", "cursor=74312e78"]
)
async def test_invalid_query_is_rejected_with_a_reason(client, headers, query):
    answer = await client.get(f"{PROFILES}?{query}", headers=headers)

    assert answer.status_code in (400, 422)
    assert answer.json()["code"] in ("invalid_request", "cursor_invalid")


@pytest.mark.parametrize("tags", ['"1"', 'W/"1"', '"7", "1"', '"7",W/"1"', "*"])
async def test_current_etag_gets_304(client, headers, url, tags):
    answer = await client.get(url, headers={**headers, "If-None-Match": tags})

    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["etag"] == '"1"'


@pytest.mark.parametrize("tags", ['"2"', "1", '"x"', "", '"1', 'junk "1"'])
async def test_other_etag_gets_the_profile(client, headers, url, tags):
    answer = await client.get(url, headers={**headers, "If-None-Match": tags})

    assert answer.status_code == 200
    assert answer.json()["version"] == 1


async def test_update_changes_only_the_given_fields(client, headers, profile, url):
    changes = {"name": " Alpine Tea ", "tone": None, "ideal_customer": {"niches": [], "followers_min": None}}

    answer = await client.patch(url, headers=headers, json=changes)

    changed = answer.json()
    assert (answer.status_code, answer.headers["etag"], changed["version"]) == (200, '"2"', 2)
    assert (changed["name"], changed["tone"]) == ("Alpine Tea", None)
    assert changed["ideal_customer"] == {**profile["ideal_customer"], "niches": [], "followers_min": None}
    assert changed["completeness"]["missing"] == [
        "tone",
        "ideal_customer.followers_min",
        "ideal_customer.niches",
    ]
    kept = set(profile) - {"name", "tone", "ideal_customer", "completeness", "version", "updated_at"}
    assert {field: changed[field] for field in kept} == {field: profile[field] for field in kept}
    assert changed["updated_at"] > profile["updated_at"]
    assert (await client.get(url, headers=headers)).json() == changed


@pytest.mark.parametrize("changes", [{}, {"ideal_customer": {}}, {"name": "Alpine Coffee "}])
async def test_update_without_a_change_keeps_the_version(client, headers, profile, url, changes):
    answer = await client.patch(url, headers=headers, json=changes)

    assert (answer.status_code, answer.headers["etag"], answer.json()) == (200, '"1"', profile)


@pytest.mark.parametrize("tags", ['"1"', '"7", "1"', "*", ' "1" '])
async def test_update_with_a_matching_etag_succeeds(client, headers, url, tags):
    answer = await client.patch(url, headers={**headers, "If-Match": tags}, json={"tone": "Dry"})

    assert (answer.status_code, answer.headers["etag"]) == (200, '"2"')


@pytest.mark.parametrize("tags", ['"2"', 'W/"1"', "1", "", '"1', '"01"', '"9999999999999999999999"', "\xff"])
@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_change_without_the_current_etag_is_rejected(client, headers, profile, url, method, tags):
    condition = {**headers, "If-Match": tags.encode("latin-1")}
    body = {"json": {"tone": "Dry"}} if method == "PATCH" else {}

    answer = await client.request(method, url, headers=condition, **body)

    assert_problem(answer, 412, "profile_changed")
    assert answer.json()["facts"] == {"version": 1}
    assert (await client.get(url, headers=headers)).json() == profile


async def test_one_of_concurrent_updates_with_the_same_etag_wins(client, headers, url):
    condition = {**headers, "If-Match": '"1"'}

    answers = await asyncio.gather(
        *(client.patch(url, headers=condition, json={"tone": f"Tone {number}"}) for number in range(8))
    )

    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 7


async def test_concurrent_updates_of_different_fields_are_all_kept(client, headers, url):
    changes = [{"tone": "Dry"}, {"summary": "S"}, {"industry": "I"}, {"ideal_customer": {"niches": ["n"]}}]

    await asyncio.gather(*(client.patch(url, headers=headers, json=change) for change in changes))

    profile = (await client.get(url, headers=headers)).json()
    assert (profile["version"], profile["tone"], profile["summary"]) == (5, "Dry", "S")
    assert (profile["industry"], profile["ideal_customer"]["niches"]) == ("I", ["n"])


async def test_a_deleted_profile_is_listed_as_deleted_only_and_can_be_restored(client, headers, profile, url):
    deleted = await client.delete(url, headers=headers)

    assert (deleted.status_code, deleted.content) == (204, b"")
    assert await listed(client, headers) == []
    assert await listed(client, headers, deleted="true") == [profile["id"]]

    restored = await client.post(f"{url}/restore", headers=headers)

    assert (restored.status_code, restored.headers["etag"]) == (200, '"3"')
    changes = {"version": 3, "updated_at": restored.json()["updated_at"]}
    assert restored.json() == {**profile, **changes}
    assert await listed(client, headers) == [profile["id"]]
    assert await listed(client, headers, deleted="true") == []


async def test_restoring_a_profile_that_is_not_deleted_changes_nothing(client, headers, profile, url):
    answer = await client.post(f"{url}/restore", headers=headers)

    assert (answer.status_code, answer.json()) == (200, profile)


@pytest.mark.parametrize(("age", "status"), [("29 days 23 hours", 200), ("30 days 1 second", 404)])
async def test_a_profile_can_be_restored_for_30_days(client, headers, owner, profile, url, age, status):
    await client.delete(url, headers=headers)
    await owner.execute(
        "update business_profiles set deleted_at = now() - $2::text::interval where id = $1",
        uuid.UUID(profile["id"]),
        age,
    )

    in_list = await listed(client, headers, deleted="true")
    answer = await client.post(f"{url}/restore", headers=headers)

    assert (answer.status_code, len(in_list)) == (status, 1 if status == 200 else 0)


@pytest.mark.parametrize(
    ("method", "suffix", "body"),
    [
        ("GET", "", None),
        ("GET", "/context", None),
        ("PATCH", "", {"name": "Mine"}),
        ("DELETE", "", None),
        ("POST", "/restore", None),
    ],
)
async def test_foreign_deleted_and_unknown_profiles_give_the_same_response(
    client, bearer, headers, profile, url, create, method, suffix, body
):
    stranger = bearer()
    deleted = (await create()).headers["location"]
    await client.delete(deleted, headers=headers)

    async def ask(address, who):
        answer = await client.request(method, address + suffix, headers=who, json=body)
        assert_problem(answer, 404, "business_profile_not_found")
        return answer.text.replace(answer.headers["x-request-id"], "")

    unknown = await ask(f"{PROFILES}/{uuid.uuid4()}", stranger)
    assert await ask(url, stranger) == unknown
    if suffix != "/restore":
        assert await ask(deleted, headers) == unknown
    assert (await client.get(url, headers=headers)).json() == profile


@pytest.mark.parametrize(
    ("method", "suffix", "body"),
    [("GET", "", None), ("POST", "", {"name": "X"}), ("GET", "/id", None), ("DELETE", "/id", None)],
)
async def test_another_tenants_account_cannot_be_chosen(client, bearer, signed_up, method, suffix, body):
    path = PROFILES + suffix.replace("id", str(uuid.uuid4()))

    async def ask(account_id):
        stranger = {**bearer(), "Oslira-Account": str(account_id)}
        answer = await client.request(method, path, headers=stranger, json=body)
        assert_problem(answer, 404, "account_not_found")
        return answer.text.replace(answer.headers["x-request-id"], "")

    assert await ask(signed_up[1]) == await ask(uuid.uuid4())


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("POST", {"name": "X"})])
async def test_a_member_of_two_accounts_has_to_choose(client, owner, signed_up, tenant, method, body):
    headers, account_id = signed_up
    user_id = await owner.fetchval("select user_id from memberships where account_id = $1", account_id)
    await owner.execute("insert into memberships values ($1, $2, 'member')", tenant.account_id, user_id)

    unclear = await client.request(method, PROFILES, headers=headers, json=body)
    chosen = await client.request(
        method, PROFILES, headers={**headers, "Oslira-Account": str(tenant.account_id)}, json=body
    )

    assert_problem(unclear, 422, "account_not_chosen")
    assert chosen.status_code in (200, 201)
    if body:
        assert chosen.json()["account_id"] == str(tenant.account_id)


async def test_the_context_is_the_same_for_the_same_content(client, create, headers, profile, url):
    customer = dict(PROFILE_BODY_EXAMPLE["ideal_customer"], niches=["slow living", "Coffee", "coffee"])
    twin = await create(**{**PROFILE_BODY_EXAMPLE, "ideal_customer": customer})
    await client.patch(url, headers=headers, json={"ideal_customer": {"niches": ["Coffee", "slow living"]}})

    first = (await client.get(f"{url}/context", headers=headers)).json()
    second = (await client.get(f"{twin.headers['location']}/context", headers=headers)).json()

    assert (first["profile_id"], first["version"]) == (profile["id"], 2)
    assert first["prompt_prefix"] == second["prompt_prefix"]
    assert first["sha256"] == hashlib.sha256(first["prompt_prefix"].encode()).hexdigest()
    assert first["characters"] == len(first["prompt_prefix"])
    assert 0 < first["tokens_estimate"] < first["characters"]
    assert profile["id"] not in first["prompt_prefix"]


@pytest.mark.parametrize("suffix", ["", "/id", "/id/restore", "/id/context"])
async def test_route_lists_its_methods_to_authenticated_callers(client, headers, suffix):
    path = PROFILES + suffix.replace("id", str(uuid.uuid4()))

    assert_problem(await client.options(path), 401, "token_missing")
    answer = await client.options(path, headers=headers)
    assert (answer.status_code, "OPTIONS" in answer.headers["allow"]) == (204, True)
