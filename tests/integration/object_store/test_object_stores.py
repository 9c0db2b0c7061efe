"""Guarantees of every object store."""

import pickle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from infrastructure.object_store.port import (
    KEY_CHARACTERS_MAX,
    OBJECT_BYTES_MAX,
    ObjectStoreUnavailable,
    is_key,
)

NO_KEYS = [
    "",
    "/",
    "/etc/passwd",
    "..",
    "../objects",
    "a/../b",
    "a/./b",
    "a//b",
    "a/",
    ".hidden",
    "a/.hidden",
    "-option",
    "A",
    "a b",
    "a\n",
    "a\x00b",
    "a\\b",
    "a+b",
    "a%2fb",
    "~a",
    "c:",
    "ü",
    "\udcff",
    "a" * (KEY_CHARACTERS_MAX + 1),
]
segments = some.from_regex(r"[a-z0-9_][a-z0-9._-]{0,15}", fullmatch=True)
keys = some.lists(segments, min_size=1, max_size=5).map("/".join)


async def test_an_object_is_found_by_its_key(store, prefix):
    await store.put(prefix + "one", b"1")
    await store.put(prefix + "two", bytes(range(256)) * 1_000)

    assert await store.get(prefix + "one") == b"1"
    assert await store.get(prefix + "two") == bytes(range(256)) * 1_000


async def test_an_empty_object_is_an_object(store, prefix):
    await store.put(prefix + "empty", b"")

    assert await store.get(prefix + "empty") == b""


async def test_unknown_key_returns_none(store, prefix):
    assert await store.get(prefix + "nothing") is None


async def test_put_replaces_the_previous_object(store, prefix):
    await store.put(prefix + "one", b"a much longer one than the next")
    await store.put(prefix + "one", b"new")

    assert await store.get(prefix + "one") == b"new"


async def test_delete_is_idempotent(store, prefix):
    await store.put(prefix + "one", b"1")
    await store.put(prefix + "two", b"2")

    await store.delete(prefix + "one")
    await store.delete(prefix + "one")

    assert await store.get(prefix + "one") is None
    assert await store.get(prefix + "two") == b"2"


async def test_key_may_be_a_prefix_of_another(store, prefix):
    await store.put(prefix + "a", b"short")
    await store.put(prefix + "a/b", b"long")

    assert (await store.get(prefix + "a"), await store.get(prefix + "a/b")) == (b"short", b"long")


@pytest.mark.parametrize("key", NO_KEYS)
@pytest.mark.parametrize("store", ["memory", "folder"], indirect=True)
async def test_invalid_key_raises_value_error(store, key):
    for attempt in (store.get(key), store.put(key, b""), store.delete(key)):
        with pytest.raises(ValueError, match="not a key"):
            await attempt


async def test_bucket_rejects_invalid_keys(bucket_store):
    for attempt in (bucket_store.get("../a"), bucket_store.put("../a", b""), bucket_store.delete("../a")):
        with pytest.raises(ValueError, match="not a key"):
            await attempt


async def test_key_of_maximum_length_is_accepted(store):
    key = ("a/" * KEY_CHARACTERS_MAX)[: KEY_CHARACTERS_MAX - 1] + "b"

    await store.put(key, b"1")

    assert len(key) == KEY_CHARACTERS_MAX
    assert await store.get(key) == b"1"


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=some.lists(keys.filter(is_key), unique=True, max_size=8))
async def test_every_key_has_its_own_file(folder_store, wanted):
    for key in wanted:
        await folder_store.put(key, key.encode())

    assert [await folder_store.get(key) for key in wanted] == [key.encode() for key in wanted]
    for key in wanted:
        await folder_store.delete(key)


@given(some.text(max_size=20))
def test_valid_key_cannot_leave_its_folder(text):
    if is_key(text):
        assert not text.startswith("/")
        assert not {"", ".", ".."} & set(text.split("/"))
        assert text.isascii()
        assert text == text.lower()


async def test_object_size_is_limited(store, prefix):
    with pytest.raises(ObjectStoreUnavailable, match="ObjectTooLarge"):
        await store.put(prefix + "one", bytes(OBJECT_BYTES_MAX + 1))

    assert await store.get(prefix + "one") is None


def test_error_keeps_its_reason_when_pickled():
    error = pickle.loads(pickle.dumps(ObjectStoreUnavailable(reason="SlowDown")))

    assert (type(error), error.reason) == (ObjectStoreUnavailable, "SlowDown")
    assert "SlowDown" in str(error)


async def test_probe_describes_the_store(store):
    assert await store.probe()
