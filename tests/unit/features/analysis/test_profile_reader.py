"""Reading a profile from the cache or from a provider."""

import asyncio
from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest

from features.analysis.application.profile_reader import ProfileReader
from features.analysis.domain.errors import (
    ProfileIsPrivate,
    ProfileNotFound,
    ProfileRestricted,
    ProfilesUnavailable,
    UsernameInvalid,
)
from features.analysis.domain.profile.freshness import TTL
from shared.ids import AccountId
from shared.llm import CostOwner
from tests.fakes.analysis import FakeKnown, FakeRecord, FakeSource
from tests.fakes.profile_reader import scrape_of
from tests.support import NOON

ANN = CostOwner(account_id=AccountId(UUID(int=1)))
BOB = CostOwner(account_id=AccountId(UUID(int=2)))
SECOND = timedelta(seconds=1)


class Now:
    """A clock that starts at noon and advances when a test calls ``wait``."""

    age = timedelta()

    def __call__(self):
        return NOON - self.age

    def wait(self, duration):
        self.age -= duration


@pytest.fixture
def now():
    return Now()


@pytest.fixture
def source(now):
    return FakeSource(now)


@pytest.fixture
def cache():
    return FakeKnown()


@pytest.fixture
def record():
    return FakeRecord()


@pytest.fixture
def profiles(source, cache, record, now):
    return ProfileReader(source=source, cache=cache, record=record, now=now)


async def turns(number=10):
    for _ in range(number):
        await asyncio.sleep(0)


async def test_unknown_profile_is_fetched_and_cached(profiles, source, cache, record):
    read = await profiles.read("ann", "deep", cost_owner=ANN)

    assert (read.profile.username, read.is_cached, read.age_s) == ("ann", False, 0.0)
    assert (read.scraped_at, read.is_simulated, read.provider) == (NOON, True, "apify")
    assert source.fetches == [("ann", 50, ANN)]
    assert cache.depths() == [50]
    assert record.points == [(False, "absent", "ann", None, ANN)]


@pytest.mark.parametrize("text", ["@Ann", "https://www.instagram.com/ann/"])
async def test_all_spellings_of_a_username_are_one_profile(profiles, source, text):
    await profiles.read("ann", "light", cost_owner=ANN)

    assert (await profiles.read(text, "light", cost_owner=ANN)).is_cached
    assert len(source.fetches) == 1


@pytest.mark.parametrize("text", ["", "../ann", "a b", "a" * 31])
async def test_invalid_username_is_rejected_before_any_fetch(profiles, source, text):
    with pytest.raises(UsernameInvalid):
        await profiles.read(text, "light", cost_owner=ANN)
    assert source.fetches == []


@pytest.mark.parametrize("analysis_type", TTL)
async def test_cached_profile_is_used_until_it_expires(profiles, source, record, now, analysis_type):
    await profiles.read("ann", analysis_type, cost_owner=ANN)
    now.wait(TTL[analysis_type])

    read = await profiles.read("ann", analysis_type, cost_owner=BOB)

    assert (read.is_cached, read.scraped_at) == (True, NOON)
    assert read.age_s == TTL[analysis_type].total_seconds()
    assert record.points[1] == (True, "hit", "ann", read.age_s, BOB)
    now.wait(SECOND)
    assert not (await profiles.read("ann", analysis_type, cost_owner=ANN)).is_cached
    assert record.points[2] == (False, "expired", "ann", read.age_s + 1, ANN)
    assert len(source.fetches) == 2


@pytest.mark.parametrize("analysis_type", ["deep", "xray"])
async def test_light_scrape_is_not_used_for_a_deep_analysis(profiles, cache, record, analysis_type):
    await profiles.read("ann", "light", cost_owner=ANN)

    read = await profiles.read("ann", analysis_type, cost_owner=ANN)

    assert (read.is_cached, len(read.profile.posts)) == (False, 50)
    assert record.reasons[1] == (False, "too_shallow")
    assert cache.depths() == [12, 50]


async def test_deep_scrape_gives_a_light_analysis_only_the_posts_it_needs(profiles, record):
    await profiles.read("ann", "deep", cost_owner=ANN)

    read = await profiles.read("ann", "light", cost_owner=ANN)

    assert read.is_cached
    assert [post.id for post in read.profile.posts] == [str(number) for number in range(12)]
    assert record.reasons[1] == (True, "hit")


async def test_deep_and_xray_share_a_scrape_while_it_is_fresh_for_both(profiles, now):
    await profiles.read("ann", "deep", cost_owner=ANN)
    now.wait(TTL["xray"])
    assert (await profiles.read("ann", "xray", cost_owner=ANN)).is_cached

    now.wait(SECOND)

    assert (await profiles.read("ann", "deep", cost_owner=ANN)).is_cached
    assert not (await profiles.read("ann", "xray", cost_owner=ANN)).is_cached


async def test_bypassing_reader_fetches_and_refreshes_the_cache_for_others(profiles, record, now):
    await profiles.read("ann", "light", cost_owner=ANN)
    now.wait(SECOND)

    read = await profiles.read("ann", "light", cost_owner=ANN, is_bypassed=True)

    assert (read.is_cached, read.scraped_at) == (False, NOON + SECOND)
    assert record.reasons[1] == (False, "bypassed")
    assert (await profiles.read("ann", "light", cost_owner=ANN)).scraped_at == NOON + SECOND


@pytest.mark.parametrize(
    ("outcome", "refusal"),
    [
        ("private", ProfileIsPrivate),
        ("not_found", ProfileNotFound),
        ("restricted", ProfileRestricted),
    ],
)
async def test_refusal_is_cached_for_an_hour_or_more(profiles, source, record, now, outcome, refusal):
    source.found = partial(scrape_of, outcome=outcome)
    for _ in range(2):
        with pytest.raises(refusal, match="@ann"):
            await profiles.read("ann", "light", cost_owner=ANN)
    assert record.reasons == [(False, "absent"), (True, "hit")]

    now.wait(timedelta(hours=6) + SECOND)
    source.found = scrape_of

    assert (await profiles.read("ann", "light", cost_owner=ANN)).profile.username == "ann"
    assert len(source.fetches) == 2


async def test_expired_scrape_is_not_used_when_the_provider_is_down(profiles, source, cache, record, now):
    await profiles.read("ann", "light", cost_owner=ANN)
    now.wait(TTL["light"] + SECOND)
    source.is_down = True

    with pytest.raises(ProfilesUnavailable):
        await profiles.read("ann", "light", cost_owner=ANN)

    assert record.reasons[1] == (False, "expired")
    assert cache.depths() == [12]


@pytest.mark.parametrize(
    ("facts", "change"),
    [
        ({"followers_count": 1_101}, "followers"),
        ({"biography": "New here"}, "biography"),
        ({"is_verified": True}, "verification"),
        ({"is_private": True}, "privacy"),
    ],
)
async def test_scrapes_of_every_depth_are_removed_after_a_change_of_the_profile(
    profiles, source, cache, now, facts, change
):
    await profiles.read("ann", "deep", cost_owner=ANN)
    now.wait(timedelta(hours=1))
    source.found = partial(scrape_of, **facts)

    read = await profiles.read("ann", "light", cost_owner=ANN, is_bypassed=True)

    assert read.changes == (change,)
    assert cache.depths() == [12]
    assert not (await profiles.read("ann", "deep", cost_owner=ANN)).is_cached


async def test_small_changes_that_add_up_invalidate_the_oldest_scrape(profiles, source, cache, now):
    await profiles.read("ann", "deep", cost_owner=ANN)
    for followers in (1_090, 1_180):
        now.wait(timedelta(hours=1))
        source.found = partial(scrape_of, followers_count=followers)
        await profiles.read("ann", "light", cost_owner=ANN, is_bypassed=True)

    assert cache.depths() == [12]


async def test_unchanged_scrapes_stay_cached(profiles, cache, now):
    await profiles.read("ann", "deep", cost_owner=ANN)
    now.wait(timedelta(hours=1))

    read = await profiles.read("ann", "light", cost_owner=ANN, is_bypassed=True)

    assert read.changes == ()
    assert cache.depths() == [12, 50]


async def test_disappeared_profile_is_not_served_from_another_depth(profiles, source):
    await profiles.read("ann", "deep", cost_owner=ANN)
    source.found = partial(scrape_of, outcome="not_found")
    with pytest.raises(ProfileNotFound):
        await profiles.read("ann", "light", cost_owner=ANN, is_bypassed=True)

    with pytest.raises(ProfileNotFound):
        await profiles.read("ann", "deep", cost_owner=ANN)


async def test_scrape_from_the_future_costs_only_one_fetch(profiles, source, cache, record):
    await cache.save("ann", scrape_of(age=-timedelta(days=400)))

    await profiles.read("ann", "light", cost_owner=ANN)
    await profiles.read("ann", "light", cost_owner=ANN)

    assert record.reasons == [(False, "ahead_of_clock"), (True, "hit")]
    assert len(source.fetches) == 1


async def test_concurrent_readers_share_one_fetch(profiles, source, record):
    source.gate.clear()
    readers = [asyncio.create_task(profiles.read("ann", "deep", cost_owner=ANN))]
    await turns()
    readers += [asyncio.create_task(profiles.read("ann", "xray", cost_owner=BOB)) for _ in range(3)]
    await turns()

    source.gate.set()
    reads = await asyncio.gather(*readers)

    assert source.fetches == [("ann", 50, ANN)]
    assert [read.is_cached for read in reads] == [False, True, True, True]
    assert record.reasons == [(False, "absent")] + [(True, "shared")] * 3


async def test_other_depths_and_usernames_are_fetched_concurrently(profiles, source):
    source.gate.clear()
    readers = [
        asyncio.create_task(profiles.read(name, analysis_type, cost_owner=ANN))
        for name, analysis_type in [("ann", "light"), ("ann", "deep"), ("bob", "light")]
    ]
    await turns()

    source.gate.set()
    await asyncio.gather(*readers)

    assert sorted(fetch[:2] for fetch in source.fetches) == [("ann", 12), ("ann", 50), ("bob", 12)]


async def test_fetch_is_cancelled_only_when_its_last_reader_is_cancelled(profiles, source, cache):
    source.gate.clear()
    readers = [asyncio.create_task(profiles.read("ann", "light", cost_owner=ANN)) for _ in range(2)]
    await turns()

    readers[0].cancel()
    await turns()
    assert (readers[0].cancelled(), source.cancelled) == (True, 0)

    readers[1].cancel()
    await asyncio.wait(readers)
    assert (source.cancelled, cache.depths()) == (1, [])


async def test_waiters_share_the_error(profiles, source):
    source.is_down = True
    source.gate.clear()
    readers = [asyncio.create_task(profiles.read("ann", "light", cost_owner=ANN)) for _ in range(3)]
    await turns()

    source.gate.set()
    outcomes = await asyncio.gather(*readers, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [ProfilesUnavailable] * 3
    assert len(source.fetches) == 1
