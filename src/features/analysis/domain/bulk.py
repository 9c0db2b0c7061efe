"""Bulk analysis: one analysis for each username of a list."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from features.analysis.domain.errors import UsernameInvalid
from features.analysis.domain.profile.profile import username_of
from features.analysis.domain.requests import NewBulkAnalysis
from shared.ids import AccountId, RunId

ItemStatus = Literal["waiting", "started", "completed", "failed", "cancelled", "skipped"]

USERNAMES_MAX = 500  # of the largest plan
SHOWN_LENGTH_MAX = 100


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
    """``ended`` is the sum of the four fields after it. The remaining items are at work or waiting."""

    total: int
    ended: int
    completed: int
    failed: int
    cancelled: int
    skipped: int
    at_work: int


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
