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
    """``run`` is set when the outcome is started, repeated, duplicate (the run in progress) or conflicting
    (same id, different content).
    """

    outcome: StartOutcome
    run: Run | None
    credits_available: int | None


class RunStarts(Protocol):
    async def start(self, run: NewRun) -> StartedRun:
        """Holds the credits, creates the run and queues it, atomically. Idempotent by the run's id. Joins the
        open admin transaction.
        """
        ...

    async def request_cancel(self, account_id: AccountId, run_id: RunId) -> tuple[CancelOutcome, Run | None]:
        """Cancels a queued run at once; sets the cancellation request of a running one."""
        ...

    async def find(self, account_id: AccountId, run_id: RunId) -> Run | None: ...


class Executions(Protocol):
    """Updates of a run by the worker that executes it. All are idempotent."""

    async def begin(
        self,
        account_id: AccountId,
        run_id: RunId,
        *,
        executor: str,
        attempts_max: int,
        engine_id: str | None = None,
    ) -> tuple[BeginOutcome, Run | None]:
        """Sets the run's fencing token to this attempt, so that earlier attempts can no longer write.
        ``engine_id`` is the engine's workflow; the outcome is superseded if the run has paused since.
        """
        ...

    async def progress(self, run: Run, percent: int, *, step: str) -> ProgressOutcome: ...

    async def pause(self, run: Run, percent: int, *, step: str, credits_needed: int) -> PauseOutcome:
        """Releases the run from its worker until the account can pay ``credits_needed``. Must be called in
        the transaction in which the hold was refused.
        """
        ...

    async def finish(
        self, run: Run, ending: RunEnd, deliver: Callable[[], Awaitable[None]] | None = None
    ) -> FinishOutcome:
        """Exactly one end succeeds. ``deliver`` writes the result in the transaction that charges for it, and
        runs only if this end succeeds.
        """
        ...

    async def fail_stalled(self) -> int:
        """Ends a batch of runs without a worker. Returns their number, 0 when none are left."""
        ...

    async def maintain_paused(self) -> int:
        """Ends a batch of runs that were paused too long and resumes those that can be paid. Returns the
        number of ended runs, 0 when none are left.
        """
        ...

    async def purge_ended(self) -> int:
        """Deletes the engine's data of a batch of runs that ended long ago and returns their number, 0 when
        none are left. Does not delete the runs.
        """
        ...


class HeartbeatReply(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a heartbeat. ``is_alive`` is False if this worker has lost its lease and must stop."""

    is_alive: bool
    cancels: frozenset[RunId]  # runs of this worker to cancel
    orphans: frozenset[str]  # executors without a heartbeat that left workflows behind


class WorkerRegistry(Protocol):
    """Registered workers. ``executor`` identifies one start of one process."""

    async def register(self, executor: str, *, host: str, queues: list[str]) -> None: ...

    async def heartbeat(self, executor: str, *, gone_after_s: float, is_draining: bool) -> HeartbeatReply: ...

    async def deregister(self, executor: str) -> None:
        """Deregisters the worker; its runs can be reassigned at once."""
        ...


# Queries


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Without ``parent_id``, child runs are excluded. ``since`` is inclusive, ``until`` exclusive."""

    status: Status | None = None
    kind: str | None = None
    parent_id: RunId | None = None
    since: datetime | None = None
    until: datetime | None = None


class RunQueryStore(Protocol):
    """Reads with the caller's rights. Raises AccountNotFound or AccountNotChosen."""

    async def find(self, caller: Caller, run_id: RunId) -> RunSnapshot | None: ...

    async def list(
        self, caller: Caller, filters: RunFilter, *, after: Cursor | None, runs_max: int
    ) -> list[RunSnapshot]:
        """Newest first, starting after the cursor."""
        ...


class Measurements(Protocol):
    """Queue lengths and durations over all accounts."""

    async def queue_figures(self, account_id: AccountId, run_id: RunId) -> QueueFigures | None:
        """Returns None if the run is not queued."""
        ...

    async def samples(self, kind: str) -> list[Sample]:
        """Returns the latest completed runs of the kind."""
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
        """Returns the new run, or the run in progress for the same work, or None if ``tried_id`` does not
        exist. Raises RunNotRetryable, and the ledger's error if credits are short. Idempotent by
        ``run_id``.
        """
        ...
