"""Usage records for tests."""

from uuid import uuid4

from features.costs.domain.provider_calls import ModelCall, ScrapeCall
from shared.llm import CostOwner, Usage
from tests.support import NOON

NO_OWNER = CostOwner()


def model_call(cost_nanodollars, *, at=NOON, cost_owner=NO_OWNER, **changes):
    fields = {
        "call_id": uuid4(),
        "attempt": 1,
        "provider": "openai",
        "model": "gpt-5-mini",
        "task": "light",
        "outcome": "answered",
        "usage": Usage(tokens_in=10, tokens_out=5),
        "is_estimated": False,
        "latency_ms": 1_500.0,
        "cache": "none",
        "is_simulated": True,
    }
    return ModelCall(at=at, cost_owner=cost_owner, cost_nanodollars=cost_nanodollars, **{**fields, **changes})


def scrape(cost_nanodollars, *, at=NOON, cost_owner=NO_OWNER, **changes):
    fields = {
        "provider": "apify",
        "username": "natgeo",
        "outcome": "ok",
        "posts_asked": 12,
        "posts_found": 12,
        "is_estimated": True,
        "duration_ms": 8_000.0,
        "is_simulated": True,
    }
    return ScrapeCall(
        at=at, cost_owner=cost_owner, cost_nanodollars=cost_nanodollars, **{**fields, **changes}
    )
