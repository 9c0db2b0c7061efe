from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

import msgspec

from features.runs.domain.estimates import QueueFigures, Sample
from features.runs.domain.run import NewRun, Run, RunEnd, Status
from features.runs.domain.view import RunSnapshot
from shared.caller import Caller
from shared.ids import AccountId, RunId, UserId
from shared.pagination import Cursor

StartOutcome = Literal[
    "started",
    "repeated",
    "duplicate",
    "insufficient",
    "key_capped",
    "unknown_key",
    "unknown_account",
    "unknown_type",
    "wrong_sign",
    "conflicting",
]
CancelOutcome = Literal["cancelled", "requested", "repeated", "ended", "unknown"]
BeginOutcome = Literal["begun", "exhausted", "ended", "superseded", "fenced", "unknown"]
ProgressOutcome = Literal["done", "ended", "fenced", "unknown"]
PauseOutcome = Literal["done", "cancelling", "ended", "fenced", "unknown"]
FinishOutcome = Literal["done", "repeated", "ended", "fenced", "unpaid", "unknown"]


class StartedRun(msgspec.Struct, frozen=True, kw_only=True):
    """``run`` is there when the outcome is started, repeated, duplicate (the run in progress) or
    conflicting (the same id, other content).
    """

    outcome: StartOutcome
    run: Run | None
    credits_available: int | None


class RunStarts(Protocol):
    async def start(self, run: NewRun) -> StartedRun:
        """Credits set aside, the run and its place in the queue: all of it, or nothing. Repeatable by the
        run's id. Joins the admin transaction that is open.
        """
        ...

    async def request_cancel(self, account_id: AccountId, run_id: RunId) -> tuple[CancelOutcome, Run | None]:
        """Cancelled at once while it waits; asked to stop while it is at work."""
        ...

    async def find(self, account_id: AccountId, run_id: RunId) -> Run | None: ...


class Executions(Protocol):
    """A run as the process sees it that works on it. Every call may be repeated."""

    async def begin(
        self,
        account_id: AccountId,
        run_id: RunId,
        *,
        executor: str,
        attempts_max: int,
        engine_id: str | None = None,
    ) -> tuple[BeginOutcome, Run | None]:
        """From here on the run's fence is this attempt's; earlier attempts write no more. ``engine_id``: the
        work that the engine carries out; superseded when the run has paused since.
        """
        ...

    async def progress(self, run: Run, percent: int, *, step: str) -> ProgressOutcome: ...

    async def pause(self, run: Run, percent: int, *, step: str, credits_needed: int) -> PauseOutcome:
        """Take the run from its worker until the account can pay ``credits_needed``. To be called in the
        transaction in which a hold of them was refused.
        """
        ...

    async def finish(
        self, run: Run, ending: RunEnd, deliver: Callable[[], Awaitable[None]] | None = None
    ) -> FinishOutcome:
        """Exactly one end wins. ``deliver`` writes what was paid for, in the transaction that charges for
        it, and only when this end is the one.
        """
        ...

    async def close_lost(self) -> int:
        """End some of what nobody works on any more; how many it were, 0 when there are no more."""
        ...

    async def tend_paused(self) -> int:
        """End some of the runs that have been paused too long, and resume those that can be paid; how many
        were ended, 0 when there are no more.
        """
        ...

    async def forget_ended(self) -> int:
        """Delete what the engine remembers of some runs that ended long ago; how many it were, 0 when there
        are no more. The runs themselves stay.
        """
        ...


class HeartbeatReply(msgspec.Struct, frozen=True, kw_only=True):
    """What a heartbeat brings back. Not alive: it was given up and has to stop."""

    is_alive: bool
    cancels: frozenset[RunId]  # runs of this process that should stop
    orphans: frozenset[str]  # executors that are gone and left work behind


class WorkerRegistry(Protocol):
    """The processes that work. ``executor`` names one life of one process."""

    async def enlist(self, executor: str, *, host: str, queues: list[str]) -> None: ...

    async def beat(self, executor: str, *, gone_after_s: float, is_draining: bool) -> HeartbeatReply: ...

    async def leave(self, executor: str) -> None:
        """In good order: its runs are others' from this moment."""
        ...


# Reading


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Without ``parent_id`` no children are shown. ``since`` is included, ``until`` is not."""

    status: Status | None = None
    kind: str | None = None
    parent_id: RunId | None = None
    since: datetime | None = None
    until: datetime | None = None


class RunQueryStore(Protocol):
    """What a caller may see. Raises AccountNotFound or AccountNotChosen."""

    async def find(self, caller: Caller, run_id: RunId) -> RunSnapshot | None: ...

    async def list(
        self, caller: Caller, only: RunFilter, *, after: Cursor | None, runs_max: int
    ) -> list[RunSnapshot]:
        """Newest first, from behind the place."""
        ...


class Measurements(Protocol):
    """Over all accounts: how busy it is, and how long things took."""

    async def queue_figures(self, account_id: AccountId, run_id: RunId) -> QueueFigures | None:
        """None when the run does not wait."""
        ...

    async def samples(self, kind: str) -> list[Sample]:
        """The newest runs of the kind that completed."""
        ...


class RunRetries(Protocol):
    async def retry(
        self,
        account_id: AccountId,
        tried_id: RunId,
        run_id: RunId,
        *,
        user_id: UserId | None,
        api_key_id: UUID | None,
        refund_policy: int,
    ) -> Run | None:
        """The new run, or the one in progress that does the same. None: there is none to try again. Raises
        RunNotRetryable, and what the ledger raises when credits are short. Repeatable by ``run_id``.
        """
        ...
