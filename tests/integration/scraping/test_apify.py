"""Scrapes via Apify: results, requests, retries and cleanup."""

import asyncio
import copy
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from apify_client._models import ListOfRunsResponse, RunResponse

from features.analysis.domain.errors import ProfilesUnavailable
from infrastructure.database.clients import DatabaseUnavailable
from infrastructure.database.semaphore import PostgresSemaphore
from infrastructure.resilience.semaphore import SlotLost, SlotsBusy
from infrastructure.scraping.failover import FailoverProfiles
from shared.llm import CostOwner
from tests.integration.scraping.apify_server import WIRE, Fault, api_error
from tests.integration.scraping.conftest import OpenSlots
from tests.support import until

COST_OWNER = CostOwner()
NASA = WIRE["profile"]["item"]


def nasa(**changes):
    return {**copy.deepcopy(NASA), **changes}


def made_post(number, **changes):
    at = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=number)
    post = copy.deepcopy(WIRE["posts"]["items"][1])
    return {**post, "id": str(number), "timestamp": at.isoformat(), **changes}


async def fetch(profiles, posts_max=12, username="nasa"):
    return await profiles.fetch(username, posts_max=posts_max, cost_owner=COST_OWNER)


def test_fake_runs_match_the_models_of_apifys_client():
    run = RunResponse.model_validate({"data": WIRE["run"]["data"]}).data
    item = {**WIRE["run"]["data"], "usageTotalUsd": 0.2}
    page = {"total": 1, "count": 1, "offset": 0, "limit": 1, "desc": True, "items": [item]}

    assert run.pricing_info.price_per_unit_usd == 0.0027
    assert ListOfRunsResponse.model_validate({"data": page}).data.items[0].meta.user_agent


async def test_twelve_posts_take_one_run(profiles, server, calls):
    server.datasets = [[nasa()]]

    scrape = await fetch(profiles)

    profile = scrape.profile
    assert (scrape.outcome, scrape.provider, scrape.posts_asked, scrape.is_simulated) == (
        "ok",
        "apify",
        12,
        True,
    )
    assert (profile.username, profile.id, profile.full_name) == ("nasa", "528817151", "NASA")
    assert (profile.followers_count, profile.following_count, profile.posts_count) == (96323377, 80, 4519)
    assert (profile.is_verified, profile.is_business, profile.is_private) == (True, True, False)
    assert profile.external_urls == (
        "https://www.nasa.gov/",
        "http://nasa.gov/events",
        "https://plus.nasa.gov",
    )
    assert profile.related_usernames == ("iss", "nasa_es")
    assert (profile.category, profile.highlights_count) == ("Government Agencies", 7)
    assert [post.kind for post in profile.posts] == ["video", "image", "carousel"]
    assert profile.posts[0].posted_at == datetime(2025, 8, 29, 17, 16, 11, tzinfo=UTC)
    assert (profile.posts[0].likes_count, profile.posts[0].video_views_count) == (53833, 926847)
    assert server.inputs == {"run1": {"usernames": ["nasa"]}}
    assert [call.provider_run_id for call in calls] == ["run1"]


async def test_run_has_limits_of_cost_time_and_memory(make_profiles, server):
    server.datasets = [[nasa()]]

    await fetch(make_profiles(run_s=77, usd_max=Decimal("0.75"), memory_mbytes=512))

    query = server.called("start")[0]["query"]
    assert query == {"maxItems": "1", "maxTotalChargeUsd": "0.75", "timeout": "77", "memory": "512"}


async def test_fifty_posts_take_a_second_run_without_duplicates(profiles, server, calls):
    latest = [made_post(number) for number in range(60, 48, -1)]
    server.datasets = [[nasa(latestPosts=latest)], [made_post(number) for number in range(60, 10, -1)]]

    scrape = await fetch(profiles, posts_max=50)

    assert [post.id for post in scrape.profile.posts] == [str(number) for number in range(60, 10, -1)]
    assert server.inputs["run2"] == {
        "directUrls": ["https://www.instagram.com/nasa/"],
        "resultsType": "posts",
        "resultsLimit": 50,
    }
    assert server.runs["run2"]["actId"] == "apify~instagram-scraper"
    assert [(call.posts_asked, call.posts_found) for call in calls] == [(50, 12), (50, 50)]


@pytest.mark.parametrize(
    ("posts_count", "shown", "runs"), [(3, 3, 1), (0, 0, 1), (13, 12, 2), (None, 12, 2), (None, 0, 1)]
)
async def test_second_run_starts_only_if_more_posts_exist(profiles, server, posts_count, shown, runs):
    latest = [made_post(number) for number in range(shown)]
    server.datasets = [[nasa(latestPosts=latest, postsCount=posts_count)], [made_post(99)]]

    await fetch(profiles, posts_max=50)

    assert len(server.runs) == runs


async def test_joint_and_pinned_posts_are_sorted_by_date(profiles, server):
    server.datasets = [[nasa(username="Pixxie_Official", latestPosts=[])], WIRE["posts"]["items"]]

    scrape = await fetch(profiles, posts_max=50, username="pixxie_official")

    assert [post.id[:4] for post in scrape.profile.posts] == ["3697", "3696", "3687"]
    assert "ความอร่อยสนุกไม่รู้จบ" in scrape.profile.posts[1].caption


async def test_failed_posts_actor_leaves_the_posts_of_the_profile(profiles, server):
    server.datasets = [[nasa()], [WIRE["errors"]["no_items"]]]

    assert len((await fetch(profiles, posts_max=50)).profile.posts) == 3


async def test_extra_posts_are_not_read(profiles, server):
    server.datasets = [[nasa(latestPosts=[])], [made_post(number) for number in range(500)]]

    scrape = await fetch(profiles, posts_max=50)

    assert len(scrape.profile.posts) == 50
    assert [call["query"]["limit"] for call in server.called("items")] == ["5", "55"]


@pytest.mark.parametrize(
    ("items", "outcome"),
    [
        ([], "not_found"),
        ([WIRE["errors"]["not_found"]], "not_found"),
        ([WIRE["errors"]["no_items"]], "restricted"),
        ([{"error": "restricted_page", "errorDescription": "Restricted access"}], "restricted"),
        ([{"error": "login_required"}], "restricted"),
        ([nasa(isRestrictedProfile=True)], "restricted"),
    ],
)
async def test_missing_or_restricted_profile_is_not_retried(profiles, server, calls, items, outcome):
    server.datasets = [items]

    scrape = await fetch(profiles, posts_max=50)

    assert (scrape.outcome, scrape.profile) == (outcome, None)
    assert len(server.runs) == 1
    assert calls.outcomes == [outcome]


async def test_private_profile_has_name_and_counts(profiles, server, calls):
    server.datasets = [[nasa(private=True)]]

    scrape = await fetch(profiles, posts_max=50)

    assert (scrape.outcome, scrape.profile.followers_count, scrape.profile.posts) == ("private", 96323377, ())
    assert calls.outcomes == ["private"]


async def test_empty_dataset_is_read_again(profiles, server, sleeps):
    server.datasets = [[]]

    async def fill():
        server.items["dataset1"] = [nasa()]

    sleeps.meanwhile = fill

    assert (await fetch(profiles)).provider == "apify"


@pytest.mark.parametrize(
    "items",
    [
        [nasa(username="esa")],
        [nasa(username=None)],
        [{"fullName": "NASA"}],
        ["nasa"],
        [None],
        [WIRE["errors"]["blocked"]],
        [{"error": "unexpected", "errorDescription": "Failed to load the page"}],
        [{"error": "not_found", "username": "esa"}],
    ],
    ids=str,
)
async def test_unusable_items_cause_another_run(profiles, server, calls, sleeps, items):
    server.datasets = [items, [nasa()]]

    scrape = await fetch(profiles)

    assert scrape.outcome == "ok"
    assert calls.outcomes == ["unavailable", "ok"]
    assert sleeps == [5.0]


async def test_requested_profile_is_selected_among_others(profiles, server):
    server.datasets = [[nasa(username="esa"), nasa(username="NASA"), nasa(username="nasa")]]

    assert (await fetch(profiles)).profile.username == "nasa"


@pytest.mark.parametrize(
    ("usd", "cost", "is_estimated"),
    [(0.0123, 12_300_000, False), (0.0, 0, False), (None, 2_700_000, True), (-1.0, 2_700_000, True)],
)
async def test_cost_is_reported_by_apify_or_estimated_per_item(
    profiles, server, calls, usd, cost, is_estimated
):
    server.usd = usd
    server.datasets = [[nasa()]]

    await fetch(profiles)

    assert [(call.cost_nanodollars, call.is_estimated) for call in calls] == [(cost, is_estimated)]


@pytest.mark.parametrize("ending", ["FAILED", "TIMED-OUT", "ABORTED"])
async def test_failed_run_is_retried(profiles, server, calls, ending):
    server.endings = [ending]
    server.datasets = [[], [nasa()]]

    assert (await fetch(profiles)).provider == "apify"
    assert calls.outcomes == ["timeout" if ending == "TIMED-OUT" else "unavailable", "ok"]


async def test_three_retries_back_off_from_five_seconds_before_unavailable(profiles, server, calls, sleeps):
    server.endings = ["FAILED"] * 9

    with pytest.raises(ProfilesUnavailable) as refusal:
        await fetch(profiles)

    assert (refusal.value.username, refusal.value.retry_after_s) == ("nasa", 60)
    assert sleeps == [5.0, 10.0, 20.0]
    assert len(server.runs) == 4
    assert calls.outcomes == ["unavailable"] * 4


@pytest.mark.parametrize("name", ["memory", "concurrent", "rate"])
async def test_not_now_errors_do_not_count_as_retries(profiles, server, calls, sleeps, name):
    server.script["start"] = [api_error(name) for _ in range(8)]
    server.datasets = [[nasa()]]

    assert (await fetch(profiles)).provider == "apify"
    assert sleeps == [5.0] * 8
    assert calls.outcomes == ["ok"]


async def test_not_now_errors_are_limited(profiles, server, calls, sleeps):
    server.script["start"] = [api_error("memory") for _ in range(99)]

    with pytest.raises(ProfilesUnavailable):
        await fetch(profiles)

    assert len(sleeps) == 20
    assert [(call.outcome, call.cost_nanodollars, call.is_estimated) for call in calls] == [
        ("unavailable", 0, False)
    ]


@pytest.mark.parametrize("name", ["token", "permissions", "usage"])
async def test_failure_that_needs_an_operator_is_not_retried(profiles, server, calls, sleeps, capsys, name):
    server.script["start"] = [api_error(name)]

    with pytest.raises(ProfilesUnavailable):
        await fetch(profiles)

    assert (sleeps, server.runs) == ([], {})
    assert calls.outcomes == ["unavailable"]
    assert "apify_rejected_us" in capsys.readouterr().out


async def test_deadline_aborts_the_run(make_profiles, server, calls):
    server.never_ends = True

    with pytest.raises(ProfilesUnavailable):
        await fetch(make_profiles(scrape_s=0.5))

    assert server.running == []
    assert [(call.outcome, call.provider_run_id) for call in calls] == [("timeout", "run1")]


async def begun(profiles, server, call):
    """A scrape that has reached this call."""
    task = asyncio.create_task(fetch(profiles))
    await until(lambda: server.called(call))
    return task


@pytest.mark.parametrize("call", ["start", "wait", "items"])
async def test_cancelled_scrape_aborts_its_run(profiles, server, calls, call):
    server.script[call] = [Fault(how="silence")]
    server.datasets = [[nasa()]]
    task = await begun(profiles, server, call)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    # The id of a run whose start was not acknowledged is unknown: it ends by its own timeout.
    expected = ("cancelled", None, 3_000_000) if call == "start" else ("cancelled", "run1", 12_300_000)
    assert [(one.outcome, one.provider_run_id, one.cost_nanodollars) for one in calls] == [expected]
    assert call == "start" or server.running == []


async def test_repeated_cancellation_does_not_prevent_the_cleanup(profiles, server, calls):
    server.never_ends = True
    task = await begun(profiles, server, "wait")
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)

    assert task.cancelled()
    assert server.running == []
    assert calls.outcomes == ["cancelled"]


async def test_scrape_cancelled_before_its_start_is_not_recorded(profiles, server, calls, sleeps):
    server.script["start"] = [api_error("memory") for _ in range(99)]
    stuck = asyncio.Event()
    sleeps.meanwhile = stuck.wait
    task = asyncio.create_task(fetch(profiles))
    await until(lambda: sleeps)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert (task.cancelled(), calls, server.runs) == (True, [], {})


class FailingSlots(OpenSlots):
    """Slots that fail a number of times, then are free."""

    def __init__(self, failure, times):
        super().__init__()
        self._failures = [failure] * times

    def acquire(self, name, limit):
        if self._failures:
            raise self._failures.pop()
        return super().acquire(name, limit)


@pytest.mark.parametrize(
    "failure", [SlotLost(name="scrapes"), DatabaseUnavailable()], ids=lambda each: each.code
)
async def test_slot_failure_passes_as_itself_and_does_not_open_the_breaker(
    make_profiles, server, calls, failure
):
    second = make_profiles(FailingSlots(AssertionError("the second source was asked"), 99))
    profiles = FailoverProfiles(make_profiles(FailingSlots(failure, times=6)), second)

    for _ in range(6):
        with pytest.raises(type(failure)):
            await fetch(profiles)
    assert (server.calls, calls) == ([], [])

    assert (await fetch(profiles)).provider == "apify"


async def test_slot_that_is_not_free_in_time_is_reported_as_busy(make_profiles, server, database):
    slots = PostgresSemaphore(database)
    async with slots.acquire("scrapes", 1):
        with pytest.raises(SlotsBusy):
            await fetch(make_profiles(slots, concurrent_max=1, slot_wait_s=0.2))

    assert server.calls == []


async def test_lost_slot_aborts_the_run(make_profiles, server, calls, database, owner):
    server.never_ends = True
    slots = PostgresSemaphore(database, lifetime_s=0.3)
    task = await begun(make_profiles(slots), server, "wait")
    await owner.execute("delete from traffic.leases where name = 'scrapes'")

    with pytest.raises(SlotLost):
        await task

    assert server.running == []
    assert calls.outcomes == ["cancelled"]


async def test_prepare_sends_no_request(profiles, server, calls):
    await profiles.prepare()

    assert (server.calls, calls) == ([], [])
