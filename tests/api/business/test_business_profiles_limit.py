"""Number of business profiles that a plan allows, also under concurrency."""

import asyncio
import uuid

from features.business.domain.profile import ProfileContent, ProfileId
from tests.api.business.urls import PROFILES, listed
from tests.support.problems import assert_problem


async def test_plan_limits_profiles_and_the_error_suggests_an_upgrade(client, signed_up):
    headers, _ = signed_up
    first = await client.post(PROFILES, headers=headers, json={"name": "One"})

    second = await client.post(PROFILES, headers=headers, json={"name": "Two"})

    assert first.status_code == 201
    assert_problem(second, 402, "business_profiles_limit")
    assert second.json()["facts"] == {"limit": 1, "plan": "free"}
    assert "larger plan" in second.json()["detail"]


async def test_deleted_profile_makes_room_and_is_restored_only_if_there_is_room(client, signed_up):
    headers, _ = signed_up
    first = (await client.post(PROFILES, headers=headers, json={"name": "One"})).headers["location"]
    await client.delete(first, headers=headers)
    second = (await client.post(PROFILES, headers=headers, json={"name": "Two"})).headers["location"]

    refused = await client.post(f"{first}/restore", headers=headers)
    await client.delete(second, headers=headers)
    restored = await client.post(f"{first}/restore", headers=headers)

    assert_problem(refused, 402, "business_profiles_limit")
    assert (restored.status_code, restored.json()["version"]) == (200, 3)


async def test_enterprise_plan_has_no_limit(client, owner, signed_up):
    headers, account_id = signed_up
    await owner.execute("update accounts set plan = 'enterprise' where id = $1", account_id)

    answers = [await client.post(PROFILES, headers=headers, json={"name": "X"}) for _ in range(60)]

    assert {answer.status_code for answer in answers} == {201}


async def test_free_plan_allows_one_of_32_concurrent_creations(client, signed_up):
    headers, _ = signed_up

    answers = await asyncio.gather(
        *(client.post(PROFILES, headers=headers, json={"name": "X"}) for _ in range(32))
    )

    assert sorted(answer.status_code for answer in answers) == [201] + [402] * 31
    assert len(await listed(client, headers)) == 1


async def test_free_plan_allows_one_of_concurrent_restores_and_creations(client, signed_up):
    headers, _ = signed_up
    addresses = []
    for _ in range(4):
        created = await client.post(PROFILES, headers=headers, json={"name": "X"})
        addresses.append(created.headers["location"])
        await client.delete(addresses[-1], headers=headers)

    await asyncio.gather(
        *(client.post(f"{address}/restore", headers=headers) for address in addresses),
        *(client.post(PROFILES, headers=headers, json={"name": "Y"}) for _ in range(4)),
    )

    assert len(await listed(client, headers)) == 1


async def test_repeated_creation_is_idempotent(application, tenant):
    profile_id = ProfileId(uuid.uuid4())
    create = application.dependencies["profiles"].create

    attempts = await asyncio.gather(
        *(create(tenant.caller, profile_id, ProfileContent(name=f"Attempt {number}")) for number in range(4))
    )

    assert all(attempt == attempts[0] for attempt in attempts)
    page = await application.dependencies["profiles"].page(
        tenant.caller, deleted=False, cursor=None, limit=10
    )
    assert page.items == attempts[:1]
