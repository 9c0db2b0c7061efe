import asyncio

import pytest

from features.analysis.domain.errors import ProfilesUnavailable
from infrastructure.resilience.semaphore import SlotsBusy
from infrastructure.scraping.failover import FailoverProfiles
from shared.llm import CostOwner


class Source:
    def __init__(self, name):
        self.name = name
        self.asked = 0
        self.is_down = False
        self.failure = None
        self.answering = None

    async def fetch(self, username, *, posts_max, cost_owner):  # noqa: ARG002  signature of the port
        self.asked += 1
        if self.answering is not None:
            await self.answering.wait()
        if self.failure is not None:
            raise self.failure
        if self.is_down:
            raise ProfilesUnavailable(username=username, retry_after_s=7)
        return self.name


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def first():
    return Source("first")


@pytest.fixture
def second():
    return Source("second")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def both(first, second, clock):
    profiles = FailoverProfiles(first, second, now_s=clock)

    async def fetch(posts_max=12):
        return await profiles.fetch("nasa", posts_max=posts_max, cost_owner=CostOwner())

    return fetch


async def test_second_source_is_used_only_when_the_first_fails(both, first, second):
    assert await both() == "first"
    assert second.asked == 0

    first.is_down = True
    assert await both() == "second"


async def test_request_beyond_the_second_source_raises_the_first_error(both, first, second):
    first.is_down = True

    with pytest.raises(ProfilesUnavailable) as refusal:
        await both(50)

    assert (refusal.value.retry_after_s, second.asked) == (7, 0)


async def test_busy_slots_fail_over_and_keep_the_breaker_closed(both, first):
    first.failure = SlotsBusy(name="scrapes")
    for _ in range(6):
        assert await both() == "second"
    with pytest.raises(SlotsBusy):
        await both(50)

    first.failure = None
    assert await both(50) == "first"


async def test_failure_of_both_sources_raises_profiles_unavailable(both, first, second):
    first.is_down = second.is_down = True

    with pytest.raises(ProfilesUnavailable):
        await both()


async def fail(both, times):
    for _ in range(times):
        await both()


async def test_five_consecutive_failures_open_the_breaker_for_a_minute(both, first, clock):
    first.is_down = True
    await fail(both, 7)
    assert first.asked == 5

    clock.now_s += 59.9
    assert await both() == "second"
    with pytest.raises(ProfilesUnavailable) as refusal:
        await both(50)
    assert (first.asked, refusal.value.retry_after_s) == (5, 1)


async def test_success_resets_the_failure_count(both, first):
    first.is_down = True
    await fail(both, 4)
    first.is_down = False
    await both()
    first.is_down = True
    await fail(both, 4)
    first.is_down = False

    assert await both() == "first"


async def test_one_of_many_calls_probes_the_first_source(both, first, clock):
    first.is_down = True
    await fail(both, 5)
    clock.now_s += 60
    first.is_down, first.answering = False, asyncio.Event()
    probe = asyncio.create_task(both())
    await asyncio.sleep(0)

    assert await asyncio.gather(*(both() for _ in range(5))) == ["second"] * 5
    first.answering.set()
    assert await probe == "first"
    assert await both() == "first"


async def test_failed_probe_opens_the_breaker_for_another_minute(both, first, clock):
    first.is_down = True
    await fail(both, 5)
    clock.now_s += 60
    await fail(both, 3)

    assert first.asked == 6


async def test_cancelled_probe_permits_the_next(both, first, clock):
    first.is_down = True
    await fail(both, 5)
    clock.now_s += 60
    first.is_down, first.answering = False, asyncio.Event()
    probe = asyncio.create_task(both())
    await asyncio.sleep(0)
    probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)
    first.answering.set()

    assert await both() == "first"
