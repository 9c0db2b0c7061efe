"""Cancellation: the provider's work is stopped, and its possible cost is recorded."""

import asyncio

import pytest

from tests.support import until
from tests.system.providers.faults import set_fault
from tests.system.providers.world import ANTHROPIC, EMBEDDINGS, OPENAI, PROFILE_RUNS

NEVER_ENDS = {"route": "/apify/run", "distribution": "fixed", "ms": 3_600_000}
ROUTES = {
    "openai": (OPENAI, "/openai/v1/responses"),
    "anthropic": (ANTHROPIC, "/anthropic/v1/messages"),
    "embeddings": (EMBEDDINGS, "/openai/v1/embeddings"),
}


async def under_way(outside, route):
    return (await outside.simulators.state())["in_flight"].get(route, 0)


async def cancelled(task):
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return task.cancelled()


@pytest.mark.parametrize("call", ROUTES)
async def test_cancelled_prompt_closes_the_connection_and_is_recorded(outside, model_rows, call):
    seen, route = ROUTES[call]
    gateway = outside.gateway()
    if call == "anthropic":
        await set_fault(outside.simulators, "openai", "/openai", "503")
    await set_fault(outside.simulators, call, route, "timeout")

    async def is_over():
        return not await under_way(outside, seen)

    work = (
        gateway.embed(["x"], outside.cost_owner)
        if call == "embeddings"
        else gateway.complete(outside.prompt())
    )
    asking = asyncio.create_task(work)
    await until(lambda: under_way(outside, seen))

    assert await cancelled(asking)

    await until(is_over)
    row = (await model_rows())[-1]
    assert (row["outcome"], row["is_estimated"], row["cost_nanodollars"] > 0) == ("cancelled", True, True)
    assert len(await model_rows()) == sum(await outside.asked(OPENAI, ANTHROPIC, EMBEDDINGS))


async def test_cancellation_in_the_model_queue_sends_nothing_and_costs_nothing(outside, model_rows):
    gateway = outside.gateway(slots_max=1)
    await set_fault(outside.simulators, "openai", "/openai", "timeout")
    first = asyncio.create_task(gateway.complete(outside.prompt()))
    await until(lambda: under_way(outside, OPENAI))
    second = asyncio.create_task(gateway.complete(outside.prompt()))
    await until(lambda: gateway._attempts._slots["openai"]._waiters)  # noqa: SLF001  the only sign of a waiter

    assert await cancelled(second)

    (row,) = await model_rows()
    assert (row["outcome"], row["attempt"], row["cost_nanodollars"]) == ("cancelled", 0, 0)
    await cancelled(first)
    assert await outside.asked(OPENAI) == [1]


async def test_cancelled_scrape_aborts_the_apify_run_and_is_recorded(outside, scrape_rows):
    await outside.simulators.latency(NEVER_ENDS)
    profiles = outside.profiles()
    reading = asyncio.create_task(profiles.read("ada.lovely", "light", cost_owner=outside.cost_owner))

    async def has_begun():
        return (await outside.simulators.state())["apify"]["running"]

    async def is_over():
        return not await has_begun()

    await until(has_begun)

    assert await cancelled(reading)

    await until(is_over)
    (row,) = await scrape_rows()
    assert (row["outcome"], row["provider"], bool(row["provider_run_id"])) == ("cancelled", "apify", True)
    assert (await outside.simulators.state())["apify"]["aborted"] == 1


async def test_cancellation_of_one_waiter_keeps_the_shared_scrape(outside, scrape_rows):
    await outside.simulators.latency({**NEVER_ENDS, "ms": 300})
    profiles = outside.profiles()
    first, second = (
        asyncio.create_task(profiles.read("ada.lovely", "light", cost_owner=outside.cost_owner))
        for _ in range(2)
    )

    async def has_begun():
        return (await outside.simulators.state())["apify"]["running"]

    await until(has_begun)

    assert await cancelled(first)

    assert (await second).profile.username == "ada.lovely"
    assert [row["outcome"] for row in await scrape_rows()] == ["ok"]


async def test_cancellation_in_the_scrape_queue_leaves_no_lease(outside, owner, scrape_rows):
    source = outside.source(concurrent_max=0)
    looking = asyncio.create_task(source.fetch("ada.lovely", posts_max=12, cost_owner=outside.cost_owner))
    queue = source._first._slots._queues  # noqa: SLF001  the only sign of a waiter
    await until(lambda: "scrapes" in queue)

    assert await cancelled(looking)

    assert await scrape_rows() == []
    assert await outside.asked(f"POST {PROFILE_RUNS}") == [0]
    assert await owner.fetchval("select count(*) from traffic.leases where name = 'scrapes'") == 0
