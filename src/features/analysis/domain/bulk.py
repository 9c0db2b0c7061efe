"""Bulk analysis: one analysis for each username of a list."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import uuid5

import msgspec

from features.analysis.domain.errors import UsernameInvalid
from features.analysis.domain.profile.profile import username_of
from features.analysis.domain.requests import NewBulkAnalysis
from shared.ids import AccountId, RunId

ItemStatus = Literal["waiting", "started", "completed", "failed", "cancelled", "skipped"]

USERNAMES_MAX = 500  # of the largest plan
SHOWN_LENGTH_MAX = 100
# Ten runs scrape at a time, over all bulk runs. A few more are started, so that no scraping slot is idle
# while the next run is in the queue or waits for a model.
STARTED_MAX = 15
BATCH_SIZE = 10
WAITING_FOR_CREDITS, CANCELLING = "waiting_for_credits", "cancelling"  # shown instead of the batch


class BulkItem(msgspec.Struct, frozen=True, kw_only=True):
    """One username of a bulk run. ``position`` is its row in the request, counted from 1."""

    account_id: AccountId
    run_id: RunId  # of the bulk run
    position: int
    username: str  # normalized by username_of
    item_run_id: RunId | None
    status: ItemStatus
    outcome: str | None


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    position: int
    text: str  # the row as sent, shortened
    code: str
    reason: str


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """``ended`` is the sum of the four fields after it. The remaining items are active or waiting."""

    total: int
    ended: int
    completed: int
    failed: int
    cancelled: int
    skipped: int
    active: int


class BulkProgress(msgspec.Struct, frozen=True, kw_only=True):
    step: str = "batch 1 of 1"
    percent: int = 0
    is_short: bool = False  # credits for the next item are missing


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """``usernames`` are pairs of position and username."""

    usernames: tuple[tuple[int, str], ...]
    rejections: tuple[Rejection, ...]


class PageItem(msgspec.Struct, frozen=True, kw_only=True):
    position: int
    username: str
    run_id: RunId | None
    status: ItemStatus
    outcome: str | None


class BulkPage(msgspec.Struct, frozen=True, kw_only=True):
    """A bulk run with one page of its items."""

    run_id: RunId
    status: str
    progress: int
    current_step: str | None
    order: NewBulkAnalysis
    created_at: datetime
    ended_at: datetime | None
    counts: dict[ItemStatus, int]  # over all items; a missing status means 0
    items: list[PageItem]
    rejections: list[Rejection]


def progress_of(counts: Counts, *, is_short: bool = False) -> BulkProgress:
    batches = -(-counts.total // BATCH_SIZE)
    batch = f"batch {min(counts.ended // BATCH_SIZE + 1, batches)} of {batches}"
    return BulkProgress(
        step=WAITING_FOR_CREDITS if is_short else batch,
        percent=100 * counts.ended // counts.total,
        is_short=is_short,
    )


def items_to_start(counts: Counts) -> int:
    """Number of waiting items that may be started now."""
    waiting = counts.total - counts.ended - counts.active
    return max(0, min(STARTED_MAX - counts.active, waiting))


def item_run_id(bulk_run_id: RunId, position: int) -> RunId:
    """The same id for the same item at any time, so that no child run is started twice."""
    return RunId(uuid5(bulk_run_id, str(position)))


def checked(texts: Sequence[str]) -> Checked:
    """Checks each row. A username that repeats an earlier row is rejected."""
    positions: dict[str, int] = {}
    rejections: list[Rejection] = []
    for position, text in enumerate(texts, start=1):
        shown = _shown(text)
        try:
            username = username_of(text)
        except UsernameInvalid:
            rejections.append(
                _rejection(position, shown, UsernameInvalid.code, str(UsernameInvalid(username=shown)))
            )
            continue
        if username in positions:
            reason = f"The same as row {positions[username]}: @{username}."
            rejections.append(_rejection(position, shown, "duplicate_in_list", reason))
        else:
            positions[username] = position
    usernames = tuple((position, username) for username, position in positions.items())
    return Checked(usernames=usernames, rejections=tuple(rejections))


def _rejection(position: int, text: str, code: str, reason: str) -> Rejection:
    return Rejection(position=position, text=text, code=code, reason=reason)


def _shown(text: str) -> str:
    """Shortened, with unprintable characters replaced, because terminals and the database reject some."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)[
        :SHOWN_LENGTH_MAX
    ]
