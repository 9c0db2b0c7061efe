"""Live progress: cache of the runs last shown, and the requests that wait for a change.

Each process has its own cache, invalidated by database notifications. While the notification connection is
down, an entry is fresh for one second and then read from the database again.
"""

import asyncio
import hashlib
import math
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

import msgspec

from features.runs.domain.run import ENDED
from features.runs.domain.view import LIVE_AFTER_END, RunResponse
from shared.caller import Caller
from shared.clock import Clock
from shared.ids import AccountId

RUNS_MAX = 10_000
CALLERS_MAX = 1_000  # per run
NOTIFICATIONS_MAX = 10_000
FRESH_S_QUEUED = 2.0  # the queue position changes without a change of the run
FRESH_S_UNNOTIFIED = 1.0
FRESH_S_MAX = 60.0  # bounds the effect of a missed notification
RETRY_AFTER_S = 2
NEVER_NOTIFIED = (-1, 0.0)

CallerKey = tuple[UUID, AccountId | None]
Headers = list[tuple[bytes, bytes]]


class RunVersion(NamedTuple):
    """Version of the cache: number of connection changes and number of notifications received."""

    generation: int
    notified: int


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """``tag`` is a digest of the whole body. ``mark`` was taken before the run was read."""

    account_id: AccountId
    out: RunResponse
    body: bytes
    tag: str
    mark: RunVersion

    @property
    def is_ended(self) -> bool:
        return self.out.status in ENDED


def render(account_id: AccountId, out: RunResponse, mark: RunVersion) -> RunView:
    body = msgspec.json.encode(out)
    digest = hashlib.blake2b(body, digest_size=9).hexdigest()
    return RunView(account_id=account_id, out=out, body=body, tag=f'"{out.version}.{digest}"', mark=mark)


class LiveRun:
    """Holds bytes, so that a poll without news is answered without encoding."""

    __slots__ = ("account_id", "callers", "fresh_until_s", "headers", "tag", "version")

    def __init__(self, view: RunView, fresh_until_s: float, callers: set[CallerKey]) -> None:
        self.account_id = view.account_id
        self.version = view.out.version
        self.tag = view.tag.encode()
        self.fresh_until_s = fresh_until_s
        self.callers = callers  # callers that have read this run from the database
        self.headers: Headers = [(b"etag", self.tag), (b"cache-control", b"private, no-cache")]
        if not view.is_ended:
            self.headers.append((b"retry-after", str(RETRY_AFTER_S).encode()))


class LiveRuns:
    def __init__(self, now: Clock, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self.now_s = now_s
        self.is_listening = False  # whether database notifications arrive
        self.is_closing = False
        self._now = now
        self._generation = 0
        self._notification_count = 0
        # Sequence number and version of the last notification per run.
        self._notified: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._runs: OrderedDict[str, LiveRun] = OrderedDict()
        self._shown: defaultdict[UUID, set[str]] = defaultdict(set)  # by user or API key
        self._waiters: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)

    def __len__(self) -> int:
        return len(self._runs)

    def find(self, run_id: str) -> LiveRun | None:
        return self._runs.get(run_id)

    @property
    def mark(self) -> RunVersion:
        """Must be taken before the database read."""
        return RunVersion(self._generation, self._notification_count)

    def is_outdated(self, view: RunView) -> bool:
        """Also returns True when older notifications have been dropped, because one may have been for this
        run.
        """
        return (
            view.mark.generation != self._generation
            or self._version_notified(view.out.run_id, view.mark) > view.out.version
            or self._notification_count - view.mark.notified > NOTIFICATIONS_MAX
        )

    def _version_notified(self, of: UUID, mark: RunVersion) -> float:
        """Returns the latest version notified since ``mark``, or 0."""
        notified, version = self._notified.get(str(of), NEVER_NOTIFIED)
        return version if notified >= mark.notified else 0

    def show(self, caller: Caller, view: RunView) -> None:
        """Caches a view that the caller has just read from the database."""
        run_id = str(view.out.run_id)
        before = self._runs.pop(run_id, None)
        if not view.out.is_live or self.is_outdated(view):
            return
        callers: set[CallerKey] = set()
        # Without notifications, a lost access would go unnoticed, so the callers are dropped.
        if before and self.is_listening and before.account_id == view.account_id:
            callers = before.callers
        # If the caller's access changed after the read began, the next poll must ask the database.
        if not any(self._version_notified(of, view.mark) for of in (caller.id, view.account_id)):
            self._add_caller(caller, run_id, callers)
        self._runs[run_id] = LiveRun(view, self.now_s() + self._fresh_s(view), callers)
        if len(self._runs) > RUNS_MAX:
            self._runs.popitem(last=False)

    def _add_caller(self, caller: Caller, run_id: str, callers: set[CallerKey]) -> None:
        if len(callers) >= CALLERS_MAX:
            callers.clear()
        shown = self._shown[caller.id]
        if len(shown) > RUNS_MAX or len(self._shown) > RUNS_MAX:
            self.clear()
            shown = self._shown[caller.id]
        callers.add((caller.id, caller.chosen_account))
        shown.add(run_id)

    def _fresh_s(self, view: RunView) -> float:
        if not self.is_listening:
            return FRESH_S_UNNOTIFIED
        if view.out.status == "queued":
            return FRESH_S_QUEUED
        if view.out.ended_at is None:
            return FRESH_S_MAX
        return min((view.out.ended_at + LIVE_AFTER_END - self._now()).total_seconds(), FRESH_S_MAX)

    # Database notifications

    def on_run_change(self, run_id: str, version: int) -> None:
        """Version 0 means a change outside the run's row; it supersedes every version."""
        notified = self._record(run_id, version or math.inf)
        live = self._runs.get(run_id)
        if live is not None and notified > live.version:
            del self._runs[run_id]
        for waiter in self._waiters.pop(run_id, ()):
            _wake(waiter)

    def on_caller_change(self, caller_id: UUID) -> None:
        """Drops cached access of a user or API key whose rights may have changed."""
        self._record(str(caller_id), math.inf)
        for run_id in self._shown.pop(caller_id, ()):
            if live := self._runs.get(run_id):
                live.callers = {key for key in live.callers if key[0] != caller_id}

    def on_account_change(self, account_id: AccountId) -> None:
        self._record(str(account_id), math.inf)
        for live in self._runs.values():
            if live.account_id == account_id:
                live.callers = set()

    def _record(self, name: str, version: float) -> float:
        """A notification without a version stays in force after one with a version, which may not include
        that change.
        """
        _, before = self._notified.pop(name, NEVER_NOTIFIED)
        version = before if before == math.inf else version
        self._notified[name] = (self._notification_count, version)
        self._notification_count += 1
        if len(self._notified) > NOTIFICATIONS_MAX:
            self._notified.popitem(last=False)
        return version

    def set_listening(self, *, is_listening: bool) -> None:
        """Clears the cache when the connection opens or closes, because a notification may be missing."""
        self.is_listening = is_listening
        self._generation += 1
        self.clear()
        self._wake_all()

    def clear(self) -> None:
        self._runs.clear()
        self._shown.clear()

    # Waiting requests

    async def wait(self, view: RunView, seconds_max: float) -> bool:
        """Waits for a notification about the run. Returns False on timeout."""
        run_id = str(view.out.run_id)
        if self.is_closing or self.is_outdated(view):
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[run_id].add(waiter)
        try:
            async with asyncio.timeout(seconds_max):
                await waiter
        except TimeoutError:
            return False
        finally:
            self._remove_waiter(run_id, waiter)
        return True

    def close(self) -> None:
        """Wakes all waiters; later calls of ``wait`` return at once."""
        self.is_closing = True
        self._wake_all()

    def _remove_waiter(self, run_id: str, waiter: asyncio.Future[None]) -> None:
        others = self._waiters.get(run_id)
        if others is not None:
            others.discard(waiter)
            if not others:
                del self._waiters[run_id]

    def _wake_all(self) -> None:
        for waiters in list(self._waiters.values()):
            for waiter in waiters:
                _wake(waiter)
        self._waiters.clear()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
