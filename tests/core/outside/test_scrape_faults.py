"""Every fault of every call to a scraper: the profile is read, or refused by name, within the attempts and
the time of a look; and every run that Apify started is a row, and is over.
"""

import asyncio

import pytest

from features.analysis.application.profile_reader import ReadProfile
from features.analysis.domain.errors import ProfilesUnavailable
from infrastructure.scraping.errors import NOT_NOW_MAX, RETRIES_MAX, RETRY_AFTER_MAX_S
from tests.core.outside.faults import FAULTS, HANGING, LIMITED, RETRY_AFTER_S, each_of, set_fault
from tests.core.outside.world import PROFILE_RUNS, SCRAPER_API, STUCK_S
from tests.support import until

NAME = "ada.lovely"
SCRAPER_FAULTS = [fault for fault in FAULTS if fault != "529"]
POSTS_RUNS = "/apify/v2/actors/apify~instagram-scraper/runs"
RUNS, DATASETS = "/apify/v2/actor-runs", "/apify/v2/datasets"
CALLS = {"start": (PROFILE_RUNS, "POST"), "wait": (RUNS, "GET"), "items": (DATASETS, "GET")}
SEEN = {
    "start": f"POST {PROFILE_RUNS}",
    "wait": f"GET {RUNS}/{{id}}",
    "items": f"GET {DATASETS}/{{id}}/items",
    "abort": f"POST {RUNS}/{{id}}/abort",
}
# The answer is spoiled, and what was asked for is done: a run is found by its mark, and not started twice.
DONE_ALL_THE_SAME = ("drip", "reset_midway", "truncated", "wrong_schema", "duplicate")
HARMLESS = {"items": ("duplicate",), "start": DONE_ALL_THE_SAME}
NEVER_ENDS = {"route": "/apify/run", "distribution": "fixed", "ms": 3_600_000}
POLLS_MAX = 2  # of one wait, by Apify's own client


@pytest.fixture
def read(outside):
    """A function: reads the profile; where a fault hangs, with deadlines that a test can wait for."""

    async def read(fault="", often="once", analysis_type="light", **limits):
        if fault in HANGING:
            limits = {"call_s": 0.5, "look_s": 2.0 if often == "for ever" else 10.0}
        profiles = outside.profiles(**limits)
        async with asyncio.timeout(STUCK_S):
            try:
                return await profiles.read(NAME, analysis_type, spender=outside.spender)
            except ProfilesUnavailable as refusal:
                return refusal

    return read


@pytest.fixture
def accounted_for(outside, scrape_rows):
    """A function: checks that every run is over and written down; the rows of each provider."""

    async def is_over():
        return await runs_of(outside, "running") == 0

    async def account_for():
        await until(is_over)
        rows = await scrape_rows()
        runs = [row["provider_run_id"] for row in rows if row["provider_run_id"]]
        assert len(runs) == len(set(runs)) == await runs_of(outside, "started")
        pages = [row for row in rows if row["provider"] == "scraperapi"]
        assert len(pages) == (await outside.asked(SCRAPER_API))[0]
        assert all(row["cost_nanodollars"] is not None and row["is_simulated"] for row in rows)
        assert max(outside.clock.waits, default=0) <= RETRY_AFTER_MAX_S
        return [row for row in rows if row["provider"] == "apify"], pages

    return account_for


async def runs_of(outside, what):
    return (await outside.simulators.state())["apify"][what]


def requests_max(fault, call="start"):
    tries = 1 + (NOT_NOW_MAX if fault in LIMITED else RETRIES_MAX)
    return tries * {"wait": POLLS_MAX, "items": 2}.get(call, 1)


@each_of(SCRAPER_FAULTS)
@pytest.mark.parametrize("call", CALLS)
async def test_a_fault_of_apify(outside, read, accounted_for, call, fault, often):
    route, method = CALLS[call]
    await set_fault(outside.simulators, "apify", route, fault, often, method)

    found = await read(fault, often)

    runs, pages = await accounted_for()
    assert isinstance(found, ReadProfile)
    assert (found.profile.username, len(found.profile.posts)) == (NAME, 12)
    assert found.profile.followers_count > 0
    is_overcome = often == "once" or fault in HARMLESS.get(call, ())
    assert found.provider == ("apify" if is_overcome else "scraperapi")
    assert [row["outcome"] for row in pages] == ([] if is_overcome else ["ok"])
    assert (runs[-1]["outcome"] == "ok") == is_overcome
    # What a run has found and cannot be read is looked for anew; all else is asked again of the same run.
    tries = 2 if often == "once" else 1 + RETRIES_MAX
    assert len(runs) == (tries if (call, fault) == ("items", "wrong_schema") else 1)
    assert (await outside.asked(SEEN[call]))[0] <= requests_max(fault, call)


@each_of(SCRAPER_FAULTS)
async def test_a_fault_of_apify_when_a_run_is_to_be_stopped(outside, scrape_rows, logs, fault, often):
    await outside.simulators.latency(NEVER_ENDS)
    await set_fault(outside.simulators, "apify", RUNS, fault, often, "POST")
    source = outside.source(call_s=0.6, poll_s=0.3)
    looking = asyncio.create_task(source.look(NAME, posts_max=12, spender=outside.spender))
    await until(lambda: runs_of(outside, "running"))

    looking.cancel()
    async with asyncio.timeout(STUCK_S):
        await asyncio.gather(looking, return_exceptions=True)

    (row,) = await scrape_rows()
    assert looking.cancelled()
    assert (row["outcome"], bool(row["provider_run_id"])) == ("cancelled", True)
    assert (await outside.asked(SEEN["abort"]))[0] <= 2
    is_stopped = often == "once" or fault in DONE_ALL_THE_SAME
    assert await runs_of(outside, "aborted") == is_stopped
    assert ("run_left_running" in [line["event"] for line in logs]) == (often == "for ever")


async def test_a_run_that_cannot_be_stopped_ends_by_itself(outside, read, accounted_for):
    await outside.simulators.latency(NEVER_ENDS)
    await set_fault(outside.simulators, "apify", RUNS, "503", method="POST")

    found = await read(look_s=0.5, run_s=1)

    (run,), _ = await accounted_for()
    assert (run["outcome"], found.provider) == ("timeout", "scraperapi")
    assert await runs_of(outside, "aborted") == 0


@each_of(SCRAPER_FAULTS)
async def test_a_fault_of_scraperapi_while_apify_is_down(outside, read, accounted_for, fault, often):
    await set_fault(outside.simulators, "apify", PROFILE_RUNS, "503", method="POST")
    await set_fault(outside.simulators, "scraperapi", "/scraperapi", fault, often)

    found = await read(fault, often)

    (run,), pages = await accounted_for()
    failed = {"timeout"} if fault in HANGING else {"unavailable"}
    assert (run["outcome"], run["cost_nanodollars"]) == ("unavailable", 0)
    if often == "once":
        assert (found.provider, [row["outcome"] for row in pages][1:]) == ("scraperapi", ["ok"])
        assert {row["outcome"] for row in pages[:1]} == failed
    else:
        assert isinstance(found, ProfilesUnavailable)
        assert {row["outcome"] for row in pages} <= {*failed, "cancelled"}
        assert len(pages) <= requests_max(fault)


@pytest.mark.parametrize("call", CALLS)
async def test_a_deep_look_that_only_apify_can_take_is_refused_by_name(outside, read, accounted_for, call):
    route, method = CALLS[call]
    await set_fault(outside.simulators, "apify", route, "503", method=method)

    refusal = await read(analysis_type="deep")

    runs, pages = await accounted_for()
    assert isinstance(refusal, ProfilesUnavailable)
    # Two runs side by side: what the fault has not met is finished or aborted, and paid for.
    assert "unavailable" in {row["outcome"] for row in runs} <= {"unavailable", "ok", "cancelled"}
    assert pages == []


async def test_a_deep_look_of_which_the_second_run_fails_has_paid_for_the_first(outside, read, accounted_for):
    await set_fault(outside.simulators, "apify", POSTS_RUNS, "503", method="POST")

    refusal = await read(analysis_type="deep")

    runs, _ = await accounted_for()
    assert isinstance(refusal, ProfilesUnavailable)
    assert [(row["outcome"], row["cost_nanodollars"] > 0) for row in runs] == [("ok", True)]


async def test_a_start_of_which_nobody_knows_what_came_is_written_down_at_its_usual_price(
    outside, read, scrape_rows, logs
):
    await set_fault(outside.simulators, "apify", PROFILE_RUNS, "503")  # the list of runs, too

    await read()

    row, _ = await scrape_rows()
    assert (row["provider_run_id"], row["is_estimated"], row["cost_nanodollars"] > 0) == (None, True, True)
    assert "run_may_be_left_running" in [line["event"] for line in logs]


@pytest.mark.parametrize("fault", RETRY_AFTER_S)
async def test_a_scraper_who_says_when_to_come_back_is_asked_then_or_after_a_minute(outside, read, fault):
    await set_fault(outside.simulators, "apify", PROFILE_RUNS, fault, "once", "POST")

    await read(fault)

    (wait_s,) = outside.clock.waits
    assert wait_s == min(max(RETRY_AFTER_S[fault], 5), RETRY_AFTER_MAX_S)
