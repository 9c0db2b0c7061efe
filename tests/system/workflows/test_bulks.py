"""Bulk analysis workflow: child runs, limits, pauses for credits and cancellation."""

# ruff: noqa: ARG001  the running engine is a fixture

import asyncio

import pytest

from tests.support import until
from tests.system.providers.world import PROFILE_RUNS

NEW_KEY = """
insert into api_keys (
    account_id, id, family_id, name, mode, secret_hash, scopes, credits_per_month_max, created_by
)
select $1, id, id, 'key', 'live', sha256(id::text::bytea), '{runs:write}', 2, id from gen_random_uuid() as id
returning id
"""


async def some(desk, count):
    return [next(desk.names) for _ in range(count)]


async def test_bulk_charges_only_delivered_items(at_work, desk, simulators):
    await simulators.latency({"route": "/apify/run", "distribution": "fixed", "ms": 30})
    names = [*await some(desk, 10), "private.weaver", "missing.weaver"]

    (bulk,) = await desk.ended(await desk.start_bulk(names))

    assert (bulk.status, bulk.outcome, bulk.progress, bulk.credits_charged) == (
        *("completed", "completed", 100, 0),
    )
    assert await desk.statuses(bulk.id) == [
        *[("completed", "completed")] * 10,
        ("failed", "private"),
        ("failed", "not_found"),
    ]
    children = await desk.children(bulk.id)
    assert [child["credits_charged"] for child in children].count(1) == 10
    assert bulk.cost_nanodollars == sum(child["cost_nanodollars"] for child in children) > 0
    assert {step.step for step in bulk.steps} <= {"batch 1 of 2", "batch 2 of 2"}
    assert (await simulators.state())["apify"]["running_max"] <= 10
    assert await desk.all_charged_once()


async def test_at_most_ten_child_runs_scrape_and_fifteen_are_started(at_work, desk, simulators):
    await simulators.latency({"route": "/apify/run", "distribution": "fixed", "ms": 600_000})
    bulk_id = await desk.start_bulk(await some(desk, 25))

    async def looks():
        return await simulators.asked(f"POST {PROFILE_RUNS}") >= 10

    await until(looks)
    started = len(await desk.children(bulk_id))
    await desk.cancel(bulk_id)
    (bulk,) = await desk.ended(bulk_id)

    assert started == len(await desk.children(bulk_id)) == 15
    assert (bulk.status, bulk.credits_charged) == ("cancelled", 0)
    statuses = await desk.statuses(bulk_id)
    assert {status for status, _ in statuses} == {"cancelled"}
    assert [outcome for _, outcome in statuses][15:] == ["cancelled_queued"] * 10
    assert all(child["ended_at"] <= bulk.ended_at for child in await desk.children(bulk_id))
    apify = (await simulators.state())["apify"]
    assert (apify["running"], apify["running_max"]) == (0, 10)
    assert await desk.all_charged_once()


def paused(desk, *bulk_ids):
    """Return a check that all bulks are paused and assigned to no worker."""

    async def are_paused():
        runs = await desk.owner.fetch("select status, executor from runs where id = any ($1)", bulk_ids)
        return all(tuple(run) == ("paused", None) for run in runs)

    return are_paused


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.battery)])
async def test_paused_bulks_do_not_block_other_accounts(at_work, desk, make_desk, count):
    poor = await make_desk(credits_granted=0)
    bulks = [await poor.start_bulk(await some(poor, 2)) for _ in range(count)]
    await until(paused(poor, *bulks), timeout_s=90)

    (bulk,) = await desk.ended(await desk.start_bulk(await some(desk, 2)))

    assert (bulk.status, await desk.statuses(bulk.id)) == ("completed", [("completed", "completed")] * 2)
    assert await paused(poor, *bulks)()
    assert [run.attempt for run in [await poor.find(bulk_id) for bulk_id in bulks]] == [0] * count


async def test_bulk_pauses_for_credits_and_resumes_after_a_grant(at_work, make_desk):
    desk = await make_desk(credits_granted=3)
    bulk_id = await desk.start_bulk(await some(desk, 8))
    await until(paused(desk, bulk_id))
    first = await desk.find(bulk_id)

    await desk.grant(2, "little")
    await until(lambda: _count_is(desk, bulk_id, 5))
    await until(paused(desk, bulk_id))
    await desk.grant(100, "enough")
    (bulk,) = await desk.ended(bulk_id)

    assert (first.current_step, first.progress) == ("waiting_for_credits", 37)
    assert (bulk.status, bulk.outcome) == ("completed", "completed")
    assert await desk.statuses(bulk_id) == [("completed", "completed")] * 8
    assert await desk.all_charged_once()


async def _count_is(desk, bulk_id, count):
    return len(await desk.children(bulk_id)) == count


async def test_credits_granted_while_bulks_pause_resume_all_of_them(at_work, make_desk):
    desk = await make_desk(credits_granted=0)
    bulks = [await desk.start_bulk(await some(desk, 1)) for _ in range(8)]

    await asyncio.gather(*(desk.grant(1, f"g{number}") for number in range(8)))

    assert {bulk.outcome for bulk in await desk.ended(*bulks)} == {"completed"}
    assert await desk.all_charged_once()


async def test_paused_bulk_is_cancelled_immediately(at_work, make_desk):
    desk = await make_desk(credits_granted=1)
    bulk_id = await desk.start_bulk(await some(desk, 3))
    await until(paused(desk, bulk_id))

    outcome = await desk.cancel(bulk_id)
    bulk = await desk.find(bulk_id)

    assert (outcome, bulk.status, bulk.outcome) == ("cancelled", "cancelled", "cancelled_queued")
    assert await desk.statuses(bulk_id) == [
        ("completed", "completed"),
        *[("cancelled", "cancelled_queued")] * 2,
    ]
    assert await desk.all_charged_once()


async def test_bulk_paused_for_seven_days_expires(at_work, make_desk):
    desk = await make_desk(credits_granted=1)
    bulk_id = await desk.start_bulk(await some(desk, 2))
    await until(paused(desk, bulk_id))
    assert await desk.runs.maintain_paused() == 0
    await desk.owner.execute("update runs set paused_at = now() - interval '7 days' where id = $1", bulk_id)

    assert await desk.runs.maintain_paused() == 1

    bulk = await desk.find(bulk_id)
    assert (bulk.status, bulk.outcome, bulk.error) == ("failed", "expired", "expired")
    assert await desk.statuses(bulk_id) == [("completed", "completed"), ("skipped", "expired")]
    assert [child["credits_charged"] for child in await desk.children(bulk_id)] == [1]
    assert await desk.all_charged_once()


async def test_bulk_item_joins_an_equal_active_run_without_a_second_charge(at_work, desk):
    name = next(desk.names)
    single = await desk.start("light", name, halt_at="inside:scrape")
    await at_work.halted(single)
    bulk_id = await desk.start_bulk([name, next(desk.names)])
    await until(lambda: _count_is(desk, bulk_id, 1))

    at_work.go_on.touch()
    (bulk,) = await desk.ended(bulk_id)

    assert await desk.statuses(bulk.id) == [("completed", "completed")] * 2
    assert [child["credits_charged"] for child in await desk.children(bulk_id)] == [1]
    assert await desk.all_charged_once()


async def test_items_beyond_the_api_key_cap_are_skipped(at_work, desk):
    key_id = await desk.owner.fetchval(NEW_KEY, desk.account_id)

    (bulk,) = await desk.ended(await desk.start_bulk(await some(desk, 4), api_key_id=key_id))

    assert bulk.status == "completed"
    assert await desk.statuses(bulk.id) == [("completed", "completed")] * 2 + [("skipped", "key_capped")] * 2
    assert {child["api_key_id"] for child in await desk.children(bulk.id)} == {key_id}
    assert await desk.all_charged_once()
