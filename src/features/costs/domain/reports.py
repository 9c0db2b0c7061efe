"""Lines of the operators' reports."""

from datetime import date, datetime
from typing import Literal

import msgspec

from shared.ids import AccountId, UserId

Cache = Literal["profiles", "answers"]


class Window(msgspec.Struct, frozen=True, kw_only=True):
    since: datetime  # inclusive
    until: datetime  # exclusive


class UserSpending(msgspec.Struct, frozen=True, kw_only=True):
    user_id: UserId | None  # None: the call has no user
    cost_nanodollars: int


class AccountSpending(msgspec.Struct, frozen=True, kw_only=True):
    account_id: AccountId | None  # None: the system, anonymous visitors and deleted accounts
    calls: int
    calls_unpriced: int
    cost_nanodollars: int
    cumulative_nanodollars: int  # including all accounts that spent more
    users: list[UserSpending]  # largest first


class AccountSpendings(msgspec.Struct, frozen=True, kw_only=True):
    cost_nanodollars: int  # of all accounts
    accounts: list[AccountSpending]


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    route: str
    requests: int
    failures: int  # responses with status 500 and above
    p50_ms: float | None  # None if the requests were only counted, not timed
    p95_ms: float | None


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Requests with a status of 400 and above, grouped by the problem's code."""

    method: str
    route: str
    status: int
    code: str
    requests: int
    requests_without_account: int


class CacheRate(msgspec.Struct, frozen=True, kw_only=True):
    at: datetime  # start of the hour or day
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
    """``task`` is "scrape" for scrapers, which have no model."""

    day: date
    provider: str
    model: str
    task: str
    calls: int
    calls_cached: int  # served without a call to the provider
    calls_failed: int
    calls_unpriced: int
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    cost_nanodollars: int
    is_simulated: bool
