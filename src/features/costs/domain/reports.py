"""What operators ask of the figures."""

from datetime import date, datetime
from typing import Literal

import msgspec

from shared.ids import AccountId, UserId

Cache = Literal["profiles", "answers"]


class Window(msgspec.Struct, frozen=True, kw_only=True):
    since: datetime  # included
    until: datetime  # not included


class UserSpending(msgspec.Struct, frozen=True, kw_only=True):
    user_id: UserId | None  # None: nobody in particular
    cost_nanodollars: int


class AccountSpending(msgspec.Struct, frozen=True, kw_only=True):
    account_id: AccountId | None  # None: the system itself, anonymous visitors, accounts that are gone
    calls: int
    calls_unpriced: int
    cost_nanodollars: int
    cumulative_nanodollars: int  # with those that spent more
    users: list[UserSpending]  # the largest first


class AccountSpendings(msgspec.Struct, frozen=True, kw_only=True):
    cost_nanodollars: int  # of everybody
    accounts: list[AccountSpending]


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    route: str
    requests: int
    failures: int  # answers of 500 and above
    p50_ms: float | None  # None where every request was only counted
    p95_ms: float | None


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that got a status of 400 and above, by the code of the problem."""

    method: str
    route: str
    status: int
    code: str
    requests: int
    requests_without_account: int


class CacheRate(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime  # when the hour or the day begins
    cache: Cache
    hits: int
    misses: int


class SuccessRate(msgspec.Struct, frozen=True, kw_only=True):
    day: date
    analysis_type: str
    completed: int
    failed: int
    cancelled: int


class CostLine(msgspec.Struct, frozen=True, kw_only=True):
    """``task`` is "scrape" where a scraper was called, which has no model."""

    day: date
    provider: str
    model: str
    task: str
    calls: int
    calls_cached: int  # answered without asking the provider
    calls_failed: int
    calls_unpriced: int
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    cost_nanodollars: int
    is_simulated: bool
