"""Recovery of analyses and bulks after a worker was killed at any place; each run is charged once.

The suite kills a worker with deep analyses and a bulk; the battery repeats it with all analysis types.
"""

import time
from functools import partial
from typing import NamedTuple

import pytest

from tests.support import until
from tests.system.engine.conftest import Workers
from tests.system.workflows.analysis_starter import PRICES
from tests.system.workflows.world import run_worker

ITEMS = 12
ASKED = {
    "light": ("light",),
    "deep": ("core", "outreach", "personality"),
    "xray": ("psychographic", "commercial", "outreach", "personality"),
}


def places(analysis_type):
    steps = ASKED[analysis_type]
    return [
        "begin",
        *("before:scrape", "inside:scrape"),
        *(f"{where}:{step}" for step in steps for where in ("before", "inside")),
        *("before:save", "inside:save"),
        "end",
    ]


class Crash(NamedTuple):
    """``runs`` by type and place, each with the desk of a separate account: a run that halts while it saves
    blocks the other runs of its account. ``bulk``: a bulk that was active at the kill."""

    runs: dict
    bulk: tuple
    recovery_s: float


async def the_crash(addresses, folder, make_desk, simulators, types):
    workers, analysts = Workers(addresses, folder), partial(run_worker, simulators.address)
    runs = {}
    try:
        doomed = await workers.start(does=analysts, halts=True)
        for key in [(each, place) for each in types for place in places(each)]:
            desk = await make_desk()
            runs[key] = (desk, await desk.start(key[0], halt_at=key[1]))
        for _, run_id in runs.values():
            await until(workers.go_on.with_name(str(run_id)).exists, timeout_s=90)
        await workers.start(does=analysts)
        await simulators.latency({"route": "/apify/run", "distribution": "fixed", "ms": 200})
        desk = await make_desk()
        bulk_id = await desk.start_bulk([next(desk.names) for _ in range(ITEMS)])
        await until(partial(_has_begun, desk, bulk_id), timeout_s=90)
        doomed.kill()
        killed_at = time.monotonic()
        for each, run_id in (*runs.values(), (desk, bulk_id)):
            await each.ended(run_id)
        return Crash(runs, (desk, bulk_id), time.monotonic() - killed_at)
    finally:
        await workers.end_all()


async def _has_begun(desk, bulk_id):
    return any(child["status"] == "processing" for child in await desk.children(bulk_id))


async def check(crash):
    """Assert one charge, one lead and one analysis per run."""
    for (analysis_type, place), (desk, run_id) in crash.runs.items():
        run = await desk.find(run_id)
        charged = PRICES[analysis_type]
        assert (place, run.status, run.credits_charged) == (place, "completed", charged)
        assert (place, await desk.saved(run_id)) == (place, (1, 1))
        assert (place, await desk.all_charged_once()) == (place, True)
    desk, bulk_id = crash.bulk
    assert await desk.statuses(bulk_id) == [("completed", "completed")] * ITEMS
    assert len(await desk.children(bulk_id)) == ITEMS
    assert await desk.all_charged_once()


async def test_deep_analysis_completes_after_a_kill_at_any_place(
    firm_addresses, firm_owner, make_desk, simulators, tmp_path
):
    crash = await the_crash(firm_addresses, tmp_path, make_desk, simulators, ["deep"])

    print(f"{len(crash.runs)} analyses ended elsewhere {crash.recovery_s:.2f} s after the kill")  # noqa: T201
    await check(crash)
    # No stored step was executed again.
    rows = await firm_owner.fetch("select run_id, count(*) from ai_usage_logs group by run_id")
    counts = dict(map(tuple, rows))
    assert {place: counts[run_id] for (_, place), (_, run_id) in crash.runs.items()} == {
        place: 4 if place in {"inside:core", "inside:outreach", "inside:personality"} else 3
        for place in places("deep")
    }


@pytest.mark.battery
@pytest.mark.parametrize("repetition", range(10))
async def test_every_analysis_type_completes_after_a_kill_at_any_place(
    firm_addresses, make_desk, simulators, tmp_path, repetition
):
    crash = await the_crash(firm_addresses, tmp_path, make_desk, simulators, list(ASKED))

    print(f"{repetition}: {crash.recovery_s:.2f} s")  # noqa: T201
    await check(crash)
