"""Concurrent runs for profile and posts with a second slot."""

import asyncio

import pytest

from features.analysis.domain.errors import ProfilesUnavailable
from infrastructure.database.semaphore import PostgresSemaphore
from tests.integration.scraping.conftest import OpenSlots
from tests.integration.scraping.test_apify import fetch, made_post, nasa
from tests.support import until

PROFILE, POSTS = "apify~instagram-profile-scraper", "apify~instagram-scraper"


@pytest.fixture
def side_by_side(make_profiles):
    return make_profiles(OpenSlots(has_spare=True))


@pytest.fixture
def deep(server):
    server.found_by = {
        PROFILE: [nasa(latestPosts=[made_post(number) for number in range(60, 48, -1)])],
        POSTS: [made_post(number) for number in range(60, 10, -1)],
    }
    return server


async def test_both_runs_are_concurrent(side_by_side, deep, calls):
    deep.endless = {PROFILE, POSTS}
    task = asyncio.create_task(fetch(side_by_side, posts_max=50))

    await until(lambda: len(deep.running) == 2)

    deep.endless = set()
    scrape = await task
    assert [post.id for post in scrape.profile.posts] == [str(number) for number in range(60, 10, -1)]
    assert sorted(call.posts_found for call in calls) == [12, 50]


async def test_twelve_posts_need_no_second_run(side_by_side, deep):
    await fetch(side_by_side, posts_max=12)

    assert len(deep.runs) == 1


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ({"private": True, "latestPosts": []}, "private"),
        ({"postsCount": 3, "latestPosts": [made_post(number) for number in range(3)]}, "ok"),
    ],
)
async def test_unnecessary_second_run_is_aborted_and_recorded(side_by_side, deep, calls, found, outcome):
    deep.endless = {POSTS}
    deep.found_by[PROFILE] = [nasa(**found)]

    scrape = await fetch(side_by_side, posts_max=50)

    assert scrape.outcome == outcome
    assert deep.running == []
    assert sorted(calls.outcomes) == sorted([outcome, "cancelled"])


async def test_failed_profile_run_ends_both(side_by_side, deep, calls):
    deep.endless = {POSTS}
    deep.found_by[PROFILE] = [{"nonsense": True}]

    with pytest.raises(ProfilesUnavailable):
        await fetch(side_by_side, posts_max=50)

    assert deep.running == []
    assert set(calls.outcomes) == {"unavailable", "cancelled"}


async def test_failed_posts_run_fails_the_scrape(side_by_side, deep, calls):
    deep.failing = {POSTS}

    with pytest.raises(ProfilesUnavailable):
        await fetch(side_by_side, posts_max=50)

    assert deep.running == []
    assert calls.outcomes.count("ok") == 1


async def test_repeated_cancellation_aborts_both_runs(side_by_side, deep, calls):
    deep.endless = {PROFILE, POSTS}
    task = asyncio.create_task(fetch(side_by_side, posts_max=50))
    await until(lambda: len(deep.running) == 2)

    while not task.done():
        task.cancel()
        await asyncio.sleep(0)

    assert task.cancelled()
    assert deep.running == []
    assert calls.outcomes == ["cancelled", "cancelled"]


async def test_without_a_second_slot_the_second_run_follows_the_first(make_profiles, deep, database):
    slots = PostgresSemaphore(database)
    alone = make_profiles(slots, concurrent_max=1)
    deep.endless = {PROFILE}
    task = asyncio.create_task(fetch(alone, posts_max=50))
    await until(lambda: deep.running)
    await until(lambda: deep.called("wait"))
    while_the_first_ran = len(deep.runs)
    deep.endless = set()

    await task

    assert (while_the_first_ran, len(deep.runs)) == (1, 2)
