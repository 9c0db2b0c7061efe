"""Every fault of every scraper call: the profile or a named error, within the attempts and the time limit;
and every run that Apify started has a row and has ended.
"""

import asyncio

import pytest

from features.analysis.application.profile_reader import ReadProfile
from features.analysis.domain.errors import ProfilesUnavailable
from infrastructure.scraping.errors import LIMITED_RETRIES_MAX, RETRIES_MAX, RETRY_AFTER_MAX_S
from tests.support import until
from tests.system.providers.faults import FAULTS, HANGING, LIMITED, RETRY_AFTER_S, each_of, set_fault
from tests.system.providers.world import PROFILE_RUNS, SCRAPER_API, STUCK_S

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
# The response is broken but the request was executed.
DONE_ALL_THE_SAME = ("drip", "reset_midway", "truncated", "wrong_schema", "duplicate")
HARMLESS = {"items": ("duplicate",)}
# Responses to a start that state that no run exists.
NOT_STARTED = (*LIMITED, "500", "503")
NEVER_ENDS = {"route": "/apify/run", "distribution": "fixed", "ms": 3_600_000}
POLLS_MAX = 2  # per wait, by Apify's own client


@pytest.fixture
def read(outside):
    """Returns a function that reads the profile, with short deadlines for faults that hang."""

    async def read(fault="", often="once", analysis_type="light", **limits):
        if fault in HANGING:
            limits = {"call_s": 0.5, "scrape_s": 2.0 if often == "for ever" else 10.0}
        profiles = outside.profiles(**limits)
        async with asyncio.timeout(STUCK_S):
            try:
                return await profiles.read(NAME, analysis_type, cost_owner=outside.cost_owner)
            except ProfilesUnavailable as refusal:
                return refusal

    return read


@pytest.fixture
def accounted_for(outside, scrape_rows):
    """Returns a function that checks that every run has ended and has a row, and returns the rows per
    provider.
    """

    async def is_over():
        return await runs_of(outside, "running") == 0

    async def account_for():
        await until(is_over)
        rows = await scrape_rows()
        runs = [row["provider_run_id"] for row in rows if row["provider_run_id"]]
        assert len(runs) == len(set(runs))
        recorded = [row for row in rows if row["provider"] == "apify"]
        assert len(recorded) >= await runs_of(outside, "started")
        pages = [row for row in rows if row["provider"] == "scraperapi"]
        assert len(pages) == (await outside.asked(SCRAPER_API))[0]
        assert all(row["cost_nanodollars"] is not None and row["is_simulated"] for row in rows)
        assert max(outside.clock.waits, default=0) <= RETRY_AFTER_MAX_S
        return [row for row in rows if row["provider"] == "apify"], pages

    return account_for


async def runs_of(outside, what):
    return (await outside.simulators.state())["apify"][what]


def requests_max(fault, call="start"):
    tries = 1 + (LIMITED_RETRIES_MAX if fault in LIMITED else RETRIES_MAX)
    return tries * {"wait": POLLS_MAX, "items": 2}.get(call, 1)


@each_of(SCRAPER_FAULTS)
@pytest.mark.parametrize("call", CALLS)
async def test_apify_fault_is_retried_or_falls_back_to_scraperapi(
    outside, read, accounted_for, call, fault, often
):
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
    # Unreadable items and a start without a response start a new run; other faults do not.
    tries = 2 if often == "once" else 1 + RETRIES_MAX
    is_repeated = (call, fault) == ("items", "wrong_schema") or (call == "start" and fault not in NOT_STARTED)
    assert len(runs) == 1 or (is_repeated and len(runs) <= tries)
    assert (await outside.asked(SEEN[call]))[0] <= requests_max(fault, call)


@each_of(SCRAPER_FAULTS)
async def test_apify_fault_during_abort(outside, scrape_rows, logs, fault, often):
    await outside.simulators.latency(NEVER_ENDS)
    await set_fault(outside.simulators, "apify", RUNS, fault, often, "POST")
    source = outside.source(call_s=0.6, poll_s=0.3)
    looking = asyncio.create_task(source.fetch(NAME, posts_max=12, cost_owner=outside.cost_owner))

    async def is_polled():  # so that the response to the start has arrived
        return (await outside.asked(SEEN["wait"]))[0] > 0

    await until(is_polled)

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


async def test_run_that_cannot_be_aborted_ends_by_its_timeout(outside, read, accounted_for):
    await outside.simulators.latency(NEVER_ENDS)
    await set_fault(outside.simulators, "apify", RUNS, "503", method="POST")

    found = await read(scrape_s=0.5, run_s=1)

    (run,), _ = await accounted_for()
    assert (run["outcome"], found.provider) == ("timeout", "scraperapi")
    assert await runs_of(outside, "aborted") == 0


@each_of(SCRAPER_FAULTS)
async def test_scraperapi_fault_while_apify_is_down(outside, read, accounted_for, fault, often):
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
async def test_deep_profile_has_no_fallback_and_raises_profiles_unavailable(
    outside, read, accounted_for, call
):
    route, method = CALLS[call]
    await set_fault(outside.simulators, "apify", route, "503", method=method)

    refusal = await read(analysis_type="deep")

    runs, pages = await accounted_for()
    assert isinstance(refusal, ProfilesUnavailable)
    # Two parallel runs: the run without the fault completes or is aborted, and costs money.
    assert "unavailable" in {row["outcome"] for row in runs} <= {"unavailable", "ok", "cancelled"}
    assert pages == []


async def test_failure_of_the_second_deep_run_keeps_the_cost_of_the_first(outside, read, accounted_for):
    await set_fault(outside.simulators, "apify", POSTS_RUNS, "503", method="POST")

    refusal = await read(analysis_type="deep")

    runs, _ = await accounted_for()
    assert isinstance(refusal, ProfilesUnavailable)
    assert [(row["outcome"], row["cost_nanodollars"] > 0) for row in runs] == [("ok", True)]


async def test_start_with_unknown_result_is_recorded_with_an_estimated_cost(outside, read, scrape_rows):
    await set_fault(outside.simulators, "apify", PROFILE_RUNS, "reset", "once", "POST")

    await read()

    row, _ = await scrape_rows()
    assert (row["provider_run_id"], row["is_estimated"], row["cost_nanodollars"] > 0) == (None, True, True)


@pytest.mark.parametrize("fault", RETRY_AFTER_S)
async def test_retry_after_of_a_scraper_is_respected_up_to_the_limit(outside, read, fault):
    await set_fault(outside.simulators, "apify", PROFILE_RUNS, fault, "once", "POST")

    await read(fault)

    (wait_s,) = outside.clock.waits
    assert wait_s == min(max(RETRY_AFTER_S[fault], 5), RETRY_AFTER_MAX_S)
