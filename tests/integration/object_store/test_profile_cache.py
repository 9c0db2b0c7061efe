"""Cache of scraped profiles."""

import asyncio
import sys
import tracemalloc
import uuid
from datetime import timedelta

import msgspec
import pytest
from structlog.testing import capture_logs

from features.analysis.domain.profile.profile import Post
from infrastructure.object_store.profile_cache import CachedProfiles
from infrastructure.object_store.profile_codec import JSON_BYTES_MAX, MAGIC
from tests.fakes.profile_reader import scrape_of
from tests.support import NOON

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HOUR = timedelta(hours=1)
KEY = "profiles/instagram/ann/v1/50"
SCRAPE = scrape_of(posts=50, biography="写真家 👩‍🔬 \x00 \u202e", external_urls=("https://example.com",))


@pytest.fixture
def username():
    """Unique per test, because the bucket is shared."""
    return uuid.uuid4().hex[:20]


@pytest.fixture
def profiles(store):
    return CachedProfiles(store)


@pytest.fixture
def remembered(memory_store):
    return CachedProfiles(memory_store, read_deadline_s=0.05, write_deadline_s=0.05)


def entry(value, *, magic=MAGIC):
    text = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return magic + zstd.compress(text)


def wide(value):
    """An entry whose decompression would need a window of 128 MB."""
    compressor = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    return MAGIC + compressor.compress(msgspec.json.encode(value)) + compressor.flush()


def altered(**fields):
    return msgspec.to_builtins(SCRAPE) | fields


async def test_scrape_is_returned_unchanged(profiles, username):
    post = Post(id="1", kind="video", caption="é" * 2_200, likes_count=0, posted_at=NOON, hashtags=("a", "b"))
    profile = msgspec.structs.replace(SCRAPE.profile, username=username, posts=(post,) * 50)
    scrape = msgspec.structs.replace(SCRAPE, profile=profile)

    await profiles.save(username, scrape)

    assert await profiles.find(username, posts_min=50) == scrape


@pytest.mark.parametrize("outcome", ["private", "not_found", "restricted"])
async def test_scrape_without_profile_is_cached(profiles, username, outcome):
    scrape = scrape_of(username, outcome=outcome)

    await profiles.save(username, scrape)

    assert await profiles.find(username, posts_min=50) == scrape


async def test_unknown_username_returns_none(profiles, username):
    assert await profiles.find(username, posts_min=12) is None


async def test_deep_scrape_serves_few_posts_but_not_the_reverse(profiles, username):
    light = scrape_of(username, posts_asked=12)
    await profiles.save(username, light)
    assert await profiles.find(username, posts_min=12) == light
    assert await profiles.find(username, posts_min=13) is None

    deep = scrape_of(username, posts_asked=50, age=-HOUR)
    await profiles.save(username, deep)

    assert await profiles.find(username, posts_min=12) == deep
    assert await profiles.find(username, posts_min=50) == deep
    assert await profiles.find(username, posts_min=51) is None


@pytest.mark.parametrize("order", [1, -1])
async def test_newest_suitable_scrape_is_returned(remembered, order):
    scrapes = [scrape_of(posts_asked=12, age=HOUR), scrape_of(posts_asked=50, age=2 * HOUR)]
    for scrape in scrapes[::order]:
        await remembered.save("ann", scrape)

    assert await remembered.find("ann", posts_min=12) == scrapes[0]
    assert await remembered.find("ann", posts_min=50) == scrapes[1]


async def test_forget_removes_every_depth_of_one_username(profiles, username):
    other = username + "x"
    for name, posts_asked in [(username, 12), (username, 50), (other, 12)]:
        await profiles.save(name, scrape_of(name, posts_asked=posts_asked))

    await profiles.delete(username)
    await profiles.delete(username)

    assert await profiles.find(username, posts_min=12) is None
    assert await profiles.find(other, posts_min=12)


async def test_entry_is_compressed_and_its_key_contains_schema_and_depth(remembered, memory_store):
    post = Post(id="1", kind="image", caption="the same words again and again " * 20)
    scrape = msgspec.structs.replace(
        SCRAPE, profile=msgspec.structs.replace(SCRAPE.profile, posts=(post,) * 50)
    )

    await remembered.save("ann", scrape)

    assert list(memory_store.objects) == [KEY]
    assert len(memory_store.objects[KEY]) < len(msgspec.json.encode(scrape)) / 10


async def test_scrape_with_too_few_posts_is_not_cached(remembered, memory_store):
    await remembered.save("ann", scrape_of(posts_asked=11))

    assert memory_store.objects == {}


async def test_scrape_of_another_username_is_not_cached(remembered, memory_store):
    with capture_logs() as logs:
        await remembered.save("ann", scrape_of("bob"))

    assert memory_store.objects == {}
    assert [(line["event"], line["reason"]) for line in logs] == [
        ("profile_not_cached", "of another username")
    ]


async def test_scrape_that_is_too_long_is_not_cached(remembered, memory_store):
    await remembered.save("ann", scrape_of(biography="x" * JSON_BYTES_MAX))

    assert memory_store.objects == {}


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


BROKEN = {
    "empty": b"",
    "half the head": MAGIC[:5],
    "only the head": MAGIC,
    "half": entry(SCRAPE)[:-20],
    "all but a byte": entry(SCRAPE)[:-1],
    "longer": entry(SCRAPE) + b"x",
    "twice": entry(SCRAPE) + entry(SCRAPE)[len(MAGIC) :],
    "another version": entry(SCRAPE, magic=MAGIC[:-1] + b"\x63"),
    "no head": entry(SCRAPE, magic=b""),
    "not compressed": MAGIC + msgspec.json.encode(SCRAPE),
    "not JSON": entry(b"<html>"),
    "not UTF-8": entry(b'{"outcome": "\xff\xfe"}'),
    "other JSON": entry(b"[]"),
    "a deep nest": entry(b'{"x":' * 200_000 + b"1" + b"}" * 200_000),
    "a bomb": entry(msgspec.json.encode(SCRAPE) + b" " * JSON_BYTES_MAX),
    "a wide window": wide(SCRAPE),
    "another profile": entry(scrape_of("bob")),
    "another depth": entry(scrape_of(posts_asked=12)),
    "another outcome": entry(altered(outcome="weird")),
    "no profile": entry(altered(profile=None)),
    "no offset": entry(altered(scraped_at="2026-01-01T12:00:00")),
    "no time": entry(altered(scraped_at="yesterday")),
    "a field of another type": entry(altered(posts_asked="50")),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
async def test_corrupt_entry_is_a_miss_logged_once_and_removed(remembered, memory_store, data):
    await memory_store.put(KEY, data)

    with capture_logs() as logs:
        found = [await remembered.find("ann", posts_min=50) for _ in range(2)]

    assert found == [None, None]
    assert [(line["event"], line["log_level"], line["key"]) for line in logs] == [
        ("cache_entry_rejected", "info", KEY)
    ]
    assert memory_store.objects == {}


async def test_flipped_bit_never_returns_another_scrape(remembered, memory_store):
    await remembered.save("ann", SCRAPE)
    data = memory_store.objects[KEY]
    for place in range(len(data)):
        memory_store.objects[KEY] = flipped(data, place)

        assert await remembered.find("ann", posts_min=50) in (None, SCRAPE)


async def test_decompression_memory_is_limited(remembered, memory_store):
    memory_store.objects[KEY] = entry(b" " * JSON_BYTES_MAX * 16)
    tracemalloc.start()

    await remembered.find("ann", posts_min=50)

    assert tracemalloc.get_traced_memory()[1] < JSON_BYTES_MAX * 4
    tracemalloc.stop()


async def test_corrupt_entry_does_not_hide_a_valid_one(remembered, memory_store):
    light = scrape_of(posts_asked=12)
    await remembered.save("ann", light)
    await memory_store.put(KEY, b"broken")

    assert await remembered.find("ann", posts_min=12) == light


@pytest.mark.parametrize("outage", ["down", "hangs"])
async def test_outage_of_the_store_is_a_miss_and_raises_nothing(remembered, memory_store, outage):
    await remembered.save("ann", SCRAPE)
    memory_store.outage = outage

    with capture_logs() as logs:
        async with asyncio.timeout(5):
            assert await remembered.find("ann", posts_min=50) is None
            await remembered.save("ann", SCRAPE)
            await remembered.delete("ann")

    assert [line["event"] for line in logs] == ["profile_not_read", "profile_not_cached"] + [
        "entry_not_removed"
    ] * 2
    memory_store.outage = None
    assert await remembered.find("ann", posts_min=50) == SCRAPE


async def test_find_can_be_cancelled_while_the_store_hangs(memory_store):
    memory_store.outage = "hangs"
    finding = asyncio.create_task(CachedProfiles(memory_store).find("ann", posts_min=50))
    await asyncio.sleep(0)

    finding.cancel()

    assert isinstance((await asyncio.gather(finding, return_exceptions=True))[0], asyncio.CancelledError)


async def test_simulated_entries_are_ignored_with_real_profiles(memory_store):
    real = msgspec.structs.replace(scrape_of(posts_asked=12, age=HOUR), is_simulated=False)
    for scrape in (SCRAPE, real):
        await CachedProfiles(memory_store).save("ann", scrape)

    profiles = CachedProfiles(memory_store, takes_simulated=False)

    assert await profiles.find("ann", posts_min=50) is None
    assert await profiles.find("ann", posts_min=12) == real
