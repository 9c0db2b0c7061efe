"""Usage records of paid provider calls."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from shared.llm import Cache, CostOwner, Usage

CallOutcome = Literal[
    "answered",  # with a usable completion
    "malformed",  # with a completion that cannot be parsed
    "refused",  # the model declined
    "rate_limited",
    "unavailable",  # provider error or no connection
    "timeout",
    "invalid",  # the provider will always reject this request
    "cancelled",
    "skipped",  # no call was made, because every circuit breaker was open
]


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """One row of ``ai_usage_logs``: an attempt at a provider, or a completion from a cache. The usage of a
    failed attempt is unknown; if it may have cost money, ``usage`` is an estimate and ``is_estimated`` is
    set.
    """

    at: datetime
    call_id: UUID  # shared by all attempts of one prompt
    attempt: int
    cost_owner: CostOwner
    provider: str
    model: str
    task: str
    outcome: CallOutcome
    usage: Usage
    is_estimated: bool
    cost_nanodollars: int | None  # priced at the time of the call; None if no price was known
    latency_ms: float
    cache: Cache
    is_simulated: bool
    error: str | None = None  # the provider's code or status, never its message
    gateway_log_id: str | None = None


class ScrapeCall(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a scraper."""

    at: datetime
    cost_owner: CostOwner
    provider: str
    username: str
    outcome: str  # ok, private, not_found, restricted, unavailable, timeout, cancelled
    posts_asked: int
    posts_found: int
    cost_nanodollars: int | None
    is_estimated: bool  # the provider reported no cost
    duration_ms: float
    is_simulated: bool
    provider_run_id: str | None = None
