"""Many analyses that were asked for at once."""

from typing import Literal

import msgspec

from shared.ids import AccountId, RunId

ItemStatus = Literal["waiting", "started", "completed", "failed", "cancelled", "skipped"]


class BulkItem(msgspec.Struct, frozen=True, kw_only=True):
    """One username of a bulk run. ``position`` is its place in what was sent, from 1."""

    account_id: AccountId
    run_id: RunId  # the bulk's
    position: int
    username: str  # as username_of gives it
    item_run_id: RunId | None
    status: ItemStatus
    outcome: str | None


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    position: int
    text: str  # as it was sent, as much of it as a reader needs
    code: str
    reason: str


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """``ended`` is the sum of the four that follow it; what is neither ended nor at work waits."""

    total: int
    ended: int
    completed: int
    failed: int
    cancelled: int
    skipped: int
    at_work: int
