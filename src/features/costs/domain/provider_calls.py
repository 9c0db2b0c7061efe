"""One call of somebody who charges for it."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from shared.llm import Cache, CostOwner, Usage

CallOutcome = Literal[
    "answered",  # with what was asked for
    "malformed",  # answered in a form that cannot be used
    "refused",  # the model declined
    "rate_limited",
    "unavailable",  # an error of the provider, or no connection
    "timeout",
    "invalid",  # the provider will never take this request
    "cancelled",
    "skipped",  # nobody was asked: every breaker was open
]


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """One row of ``ai_usage_logs``: an attempt at a provider, or an answer that needed none. What a failed
    attempt used is not known; when it may have cost money, ``usage`` is an estimate and says so.
    """

    at: datetime
    call_id: UUID  # the same for every attempt at one question
    attempt: int
    spender: CostOwner
    provider: str
    model: str
    task: str
    outcome: CallOutcome
    usage: Usage
    is_estimated: bool
    cost_nanodollars: int | None  # as priced then; None when no price was known
    latency_ms: float
    cache: Cache
    is_simulated: bool
    error: str | None = None  # the provider's own code or status, never its text
    gateway_log_id: str | None = None


class ScrapeCall(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a scraper."""

    at: datetime
    spender: CostOwner
    provider: str
    username: str
    outcome: str  # ok, private, not_found, restricted, unavailable, timeout, cancelled
    posts_asked: int
    posts_found: int
    cost_nanodollars: int | None
    is_estimated: bool  # the provider said nothing of the cost
    duration_ms: float
    is_simulated: bool
    provider_run_id: str | None = None
