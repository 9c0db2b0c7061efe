"""Run: paid unit of work that takes longer than a request, and its states.

The database functions (``runs.*``) enforce the same rules across processes; the rules here are for decisions
before a write.
"""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from shared.ids import AccountId, RunId, UserId

Status = Literal["queued", "processing", "completed", "failed", "cancelled", "paused"]
EndStatus = Literal["completed", "failed", "cancelled"]

ENDED: frozenset[Status] = frozenset({"completed", "failed", "cancelled"})


class StepStarted(msgspec.Struct, frozen=True):
    """The start of the next step is the end of this one."""

    step: str
    at: datetime


class Run(msgspec.Struct, frozen=True, kw_only=True):
    account_id: AccountId
    id: RunId
    kind: str
    status: Status
    progress: int
    current_step: str | None
    should_cancel: bool
    parent_id: RunId | None
    subject: dict[str, Any]  # parameters of the work
    outcome: str | None
    error: str | None
    credits_held: int
    credits_charged: int
    hold_reference: str | None
    user_id: UserId | None
    api_key_id: UUID | None
    engine_id: str
    uses_concurrency_slot: bool
    refund_policy: int
    retry_of: RunId | None
    cost_nanodollars: int | None
    steps: tuple[StepStarted, ...]
    attempt: int
    fence: int
    created_at: datetime
    admitted_at: datetime | None  # None: waits for its account's limit of concurrent runs
    started_at: datetime | None
    ended_at: datetime | None
    updated_at: datetime
    version: int

    @property
    def is_ended(self) -> bool:
        return self.status in ENDED


class NewRun(msgspec.Struct, frozen=True, kw_only=True):
    """``dedup_key``: only one run with this key is in progress; a second start returns the first run.
    ``uses_concurrency_slot``: counts against the account's concurrency limit; a run that only waits for its
    children does not need to. ``refund_policy``: the version by which the run is settled, even if a newer
    one exists then.
    """

    account_id: AccountId
    id: RunId
    kind: str
    subject: dict[str, Any]
    credits_held: int
    transaction_type: str
    queue: str
    uses_concurrency_slot: bool = True
    dedup_key: str | None = None
    parent_id: RunId | None = None
    user_id: UserId | None = None
    api_key_id: UUID | None = None
    refund_policy: int = 1
    retry_of: RunId | None = None

    def __post_init__(self) -> None:
        assert self.credits_held >= 0, "a hold is not negative"


class RunEnd(msgspec.Struct, frozen=True, kw_only=True):
    """``credits_charged`` are spent, and the rest of the hold is released. ``outcome`` is a code of the
    refund policy; ``error`` is the reason of a failure.
    """

    status: EndStatus
    outcome: str
    credits_charged: int = 0
    error: str | None = None

    def __post_init__(self) -> None:
        assert self.credits_charged >= 0, "a charge is not negative"
        assert self.error is None or self.status == "failed", "only a failed run has an error"
