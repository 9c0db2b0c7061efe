"""Response schemas of the API, limited to the fields that commands show. Unknown fields are ignored."""

from datetime import datetime
from typing import Any

import msgspec

ENDED = frozenset({"completed", "failed", "cancelled"})


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Queue(Answer, frozen=True, kw_only=True):
    position: int | None = None
    starts_in_s: float | None = None


class Refund(Answer, frozen=True, kw_only=True):
    percent_charged: int
    explanation: str


class Run(Answer, frozen=True, kw_only=True):
    run_id: str
    kind: str
    status: str
    progress: int
    current_step: str | None = None
    should_cancel: bool = False
    queue: Queue | None = None
    eta_s: float | None = None
    credits_held: int = 0
    credits_charged: int = 0
    outcome: str | None = None
    error: str | None = None
    refund: Refund | None = None
    result_url: str | None = None
    retry_of: str | None = None
    subject: dict[str, Any] = {}
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def is_ended(self) -> bool:
        return self.status in ENDED

    @property
    def is_bulk(self) -> bool:
        return self.kind == "bulk_analysis"


class Runs(Answer, frozen=True, kw_only=True):
    items: list[Run]
    next_cursor: str | None = None


class StartedRun(Answer, frozen=True, kw_only=True):
    """The run that a start request has created."""

    run_id: str


class Business(Answer, frozen=True, kw_only=True):
    id: str
    name: str


class Businesses(Answer, frozen=True, kw_only=True):
    items: list[Business]
    next_cursor: str | None = None


class Balance(Answer, frozen=True, kw_only=True):
    credits_available: int
    credits_held: int


class CallCosts(Answer, frozen=True, kw_only=True):
    calls: int
    cost_dollars: float


class Margins(Answer, frozen=True, kw_only=True):
    revenue_dollars: float
    gross_dollars: float
    percent: float | None
    is_at_most: bool


class RunCosts(Answer, frozen=True, kw_only=True):
    apify: CallCosts
    ai: CallCosts
    total: CallCosts
    margins: Margins
