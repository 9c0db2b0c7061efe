import pytest

from shared.ttl_cache import TtlCache


class Clock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cache(clock):
    return TtlCache(3, now_s=clock)


@pytest.mark.parametrize(("seconds", "value"), [(0.0, 1), (9.9, 1), (10.0, None)])
def test_entry_expires(cache, clock, seconds, value):
    cache.set("a", 1, ttl_s=10)
    clock.now_s += seconds

    assert cache.get("a") == value


@pytest.mark.parametrize("ttl_s", [0.0, -30.0])
def test_entry_without_a_lifetime_is_never_found(cache, ttl_s):
    cache.set("a", 1, ttl_s=ttl_s)

    assert cache.get("a") is None


def test_full_cache_evicts_the_entry_that_was_set_first(cache):
    for key in ("a", "b", "c"):
        cache.set(key, key, ttl_s=10)
    cache.set("a", "again", ttl_s=10)
    cache.set("d", "d", ttl_s=10)

    assert [cache.get(key) for key in ("a", "b", "c", "d")] == ["again", None, "c", "d"]
    assert len(cache) == 3
