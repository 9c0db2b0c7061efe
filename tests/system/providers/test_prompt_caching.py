"""Prompt caching: a repeated prefix costs less."""

import pytest

from shared.llm import Usage
from tests.system.providers.faults import set_fault

LONG = "The business sells looms to people who weave at home. " * 150


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_repeated_prefix_costs_less(outside, books, model_rows, provider):
    if provider == "anthropic":
        await set_fault(outside.simulators, "openai", "/openai", "503")
    gateway, cached_prefix = outside.gateway(), ("You judge profiles.", LONG)

    for _ in range(2):
        await gateway.complete(outside.prompt(cached_prefix=cached_prefix))

    first, second = [row for row in await model_rows() if row["provider"] == provider]
    assert (first["tokens_cached"], second["tokens_cached"] > 1_000) == (0, True)
    assert second["cost_nanodollars"] < first["cost_nanodollars"]
    # Cached tokens are part of the input, so both calls have the same number of input tokens.
    assert first["tokens_in"] == second["tokens_in"] > second["tokens_cached"]
    assert (first["tokens_cache_written"] > 1_000) == (provider == "anthropic")
    for row in (first, second):
        usage = Usage(**{name: row[name] for name in Usage.__struct_fields__})
        price = books.prices.of_tokens(provider, row["model"], usage, row["created_at"])
        assert row["cost_nanodollars"] == price
