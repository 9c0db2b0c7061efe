"""Profile cache: reuse, lifetime and damaged entries."""

from datetime import timedelta

import pytest

from features.analysis.domain.errors import ProfileIsPrivate
from features.analysis.domain.profile.profile import POSTS_NEEDED
from shared.clock import utc_now

NAME, PRIVATE = "ada.lovely", "private.ada"


class Reader:
    """Reads profiles and counts the scraper runs; ``later`` moves its clock."""

    def __init__(self, outside):
        self._outside = outside
        self._later = timedelta()
        self._profiles = outside.profiles(now=lambda: utc_now() + self._later)

    async def __call__(self, analysis_type, *, name=NAME, later=timedelta(), is_bypassed=False):
        self._later = later
        before = await self._runs()
        read = await self._profiles.read(
            name, analysis_type, cost_owner=self._outside.cost_owner, is_bypassed=is_bypassed
        )
        assert len(read.profile.posts) == POSTS_NEEDED[analysis_type]
        return read.is_cached, await self._runs() - before

    async def refused(self, *, later=timedelta()):
        before = await self._runs()
        with pytest.raises(ProfileIsPrivate):
            await self("light", name=PRIVATE, later=later)
        return await self._runs() - before

    async def _runs(self):
        return (await self._outside.simulators.state())["apify"]["started"]


@pytest.fixture
def read(outside):
    return Reader(outside)


async def test_second_read_sends_no_request(outside, read):
    assert await read("light") == (False, 1)
    requests = (await outside.simulators.state())["requests"]

    assert await read("light") == (True, 0)
    assert (await outside.simulators.state())["requests"] == requests


async def test_cache_is_shared_between_processes(outside, read):
    await read("light")

    assert await Reader(outside)("light") == (True, 0)


async def test_deep_profile_serves_light_reads_but_not_the_reverse(read):
    await read("light")

    assert await read("deep") == (False, 2)
    assert await read("deep") == (True, 0)
    assert await read("light") == (True, 0)


@pytest.mark.parametrize(("analysis_type", "hours"), [("light", 24), ("deep", 12), ("xray", 6)])
async def test_cache_lifetime_depends_on_the_analysis_type(read, analysis_type, hours):
    await read(analysis_type)

    assert (await read(analysis_type, later=timedelta(hours=hours, minutes=-1)))[0]
    assert not (await read(analysis_type, later=timedelta(hours=hours, minutes=1)))[0]


async def test_bypassing_read_refreshes_the_cache(read):
    await read("light")

    assert await read("light", is_bypassed=True) == (False, 1)
    assert await read("light") == (True, 0)


async def test_private_profile_is_cached_for_an_hour(read):
    assert await read.refused() == 1
    assert await read.refused(later=timedelta(minutes=59)) == 0
    assert await read.refused(later=timedelta(minutes=61)) == 1


@pytest.mark.parametrize("left", [0, 20, -1], ids=["nothing", "a little", "nearly all"])
async def test_truncated_cache_file_is_ignored(read, tmp_path, left):
    await read("light")
    (path,) = (path for path in (tmp_path / "objects").rglob("*") if path.is_file())
    path.write_bytes(path.read_bytes()[:left])

    assert await read("light") == (False, 1)
    assert await read("light") == (True, 0)
