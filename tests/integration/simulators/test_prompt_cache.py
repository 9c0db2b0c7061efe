from simulators.ai.prompt_cache import PromptCache


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def cached(memory, prompt, owner="key"):
    return memory.tokens_cached(owner, prompt, lifetime_s=60)


def test_cached_prefix_counts_in_whole_blocks():
    memory = PromptCache()
    cached(memory, "a" * 4 * 1_400)

    assert cached(memory, "a" * 4 * 1_300 + "b" * 4_000) == 1_024 + 2 * 128
    assert cached(memory, "b" + "a" * 5_600) == 0


def test_cache_is_separate_for_each_owner():
    memory = PromptCache()
    cached(memory, "a" * 5_000)

    assert cached(memory, "a" * 5_000, owner="other") == 0


def test_cached_prefix_expires():
    clock = Clock()
    memory = PromptCache(now=clock)
    cached(memory, "a" * 5_000)
    clock.now = 61.0

    assert cached(memory, "a" * 5_000) == 0


def test_oldest_prefixes_are_evicted():
    memory = PromptCache(prefixes_max=2)
    for letter in "abc":
        cached(memory, letter * 4 * 1_100)

    assert [cached(memory, letter * 4 * 1_100) for letter in "cba"] == [1_024, 1_024, 0]
