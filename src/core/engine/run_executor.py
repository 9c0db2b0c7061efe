"""Execution of one dequeued run, with exactly one end whatever the workflow raises."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from dbos import DBOS
from dbos import error as engine_error
from sqlalchemy.exc import SQLAlchemyError

from core.engine.retry import until_database_answers
from core.engine.run_context import RunCancelled, RunContext, StepFailed
from features.runs.application.ports import Executions
from features.runs.domain.run import Run, RunEnd
from shared.ids import AccountId, RunId

# Counts crashes and deployments; the limit stops a run that kills its worker each time.
ATTEMPTS_MAX = 10

log: structlog.stdlib.BoundLogger = structlog.get_logger("engine")


@dataclass(frozen=True, slots=True)
class RunResult:
    """``deliver`` writes the result in the transaction that charges for it, and is called again when that
    transaction fails. ``afterwards`` is called at most once after the run has ended: the process may die
    before the call.
    """

    ending: RunEnd
    deliver: Callable[[], Awaitable[None]] | None = None
    afterwards: Callable[[], Awaitable[None]] | None = None


class Suspended:
    """The run is paused and has left the worker; it has not ended."""


SUSPENDED = Suspended()


@dataclass(frozen=True, slots=True)
class Workflow:
    """Program for runs of ``kind``. ``carry_out`` must be deterministic, because it is replayed."""

    kind: str
    carry_out: Callable[[RunContext], Awaitable[RunResult | Suspended]]


EXHAUSTED = RunResult(RunEnd(status="failed", outcome="internal_failure", error="attempts_exhausted"))
BROKEN = RunResult(RunEnd(status="failed", outcome="internal_failure", error="internal_error"))
DIVERGED = RunResult(RunEnd(status="failed", outcome="internal_failure", error="workflow_changed"))
CANCELLED = RunResult(RunEnd(status="cancelled", outcome="cancelled"))


class ActiveRuns:
    """Runs that this process executes."""

    def __init__(self) -> None:
        self._works: dict[RunId, RunContext] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting: set[asyncio.Task[Any]] = set()  # the subset of tasks that only wait for other runs
        self._changed = asyncio.Event()

    def enter(self) -> asyncio.Task[Any]:
        task = asyncio.current_task()
        assert task is not None, "a coroutine that runs has a task"
        self._tasks.add(task)
        return task

    def leave(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._waiting.discard(task)
        self._changed.set()

    def begin(self, work: RunContext, task: asyncio.Task[Any]) -> None:
        self._works[work.run.id] = work
        if not work.run.uses_concurrency_slot:
            self._waiting.add(task)

    def end(self, work: RunContext) -> None:
        if self._works.get(work.run.id) is work:
            del self._works[work.run.id]

    def cancel(self, run_id: RunId) -> None:
        """Request cancellation; the workflow determines the outcome. Ignores runs of other processes."""
        if work := self._works.get(run_id):
            work.cancel()

    def wake(self, run_id: RunId | None) -> None:
        """Wake a parent run, because one of its child runs has ended."""
        if run_id is not None and (work := self._works.get(run_id)):
            work.wake()

    async def drain(self) -> None:
        """Wait until no task is active. Tasks that only wait for other runs are cancelled: another worker can
        resume them.
        """
        for task in self._waiting:
            task.cancel("stopped")
        while self._tasks:
            self._changed.clear()
            await self._changed.wait()

    def stop(self) -> None:
        """Cancel all tasks without writing; another worker resumes the runs from their stored steps."""
        for task in self._tasks:
            task.cancel("stopped")

    async def abandon(self) -> None:
        """Like ``stop``, but return after all tasks have ended."""
        self.stop()
        if self._tasks:
            await asyncio.wait(set(self._tasks))


class RunExecutor:
    """Executes runs under one executor id."""

    def __init__(self, executions: Executions, executor: str, running: ActiveRuns) -> None:
        self._executions = executions
        self._executor = executor
        self._running = running

    async def run(self, workflow: Workflow, account_id: str, run_id: str) -> str:
        """Begin, execute and finish a run. Begin and finish are not steps: begin counts each attempt, and
        finish is idempotent.
        """
        task = self._running.enter()
        try:
            outcome, run = await until_database_answers(
                lambda: self._executions.begin(
                    AccountId(UUID(account_id)),
                    RunId(UUID(run_id)),
                    executor=self._executor,
                    attempts_max=ATTEMPTS_MAX,
                    engine_id=DBOS.workflow_id,
                )
            )
            if outcome == "fenced":
                raise asyncio.CancelledError(outcome)
            if run is None or outcome in {"ended", "superseded"}:
                return outcome
            finished = await self._carry_out(workflow, run, task) if outcome == "begun" else EXHAUSTED
            if isinstance(finished, Suspended):
                return "paused"
            outcome = await self._finish(run, finished)
            self._running.wake(run.parent_id)
            if outcome == "done" and finished.afterwards is not None:
                await self._after(run, finished.afterwards)
            return outcome
        finally:
            self._running.leave(task)

    async def _carry_out(
        self, workflow: Workflow, run: Run, task: asyncio.Task[Any]
    ) -> RunResult | Suspended:
        work = RunContext(run, self._executions)
        self._running.begin(work, task)
        try:
            return await workflow.carry_out(work)
        except RunCancelled:
            return CANCELLED
        except StepFailed as refusal:
            return RunResult(RunEnd(status="failed", outcome="internal_failure", error=refusal.code))
        except SQLAlchemyError as error:
            # DBOS could not store a step; the next attempt resumes after the last stored one.
            log.warning("step_not_kept", kind=run.kind, run_id=str(run.id), error=type(error).__name__)
            raise asyncio.CancelledError("step_not_kept") from error
        except engine_error.DBOSException as error:
            # The stored steps do not match the current workflow code.
            log.error("workflow_diverged", kind=run.kind, run_id=str(run.id), error=type(error).__name__)  # noqa: TRY400
            return DIVERGED
        except Exception:
            log.exception("workflow_broken", kind=run.kind, run_id=str(run.id))
            return BROKEN
        finally:
            self._running.end(work)

    async def _finish(self, run: Run, finished: RunResult) -> str:
        try:
            outcome = await until_database_answers(
                lambda: self._executions.finish(run, finished.ending, finished.deliver)
            )
        except Exception:
            if finished.deliver is None:
                raise
            # The failed transaction contained the charge too, so the run ends without one.
            log.exception("delivery_broken", kind=run.kind, run_id=str(run.id))
            outcome = await until_database_answers(lambda: self._executions.finish(run, BROKEN.ending))
        if outcome == "fenced":
            raise asyncio.CancelledError(outcome)
        return outcome

    async def _after(self, run: Run, call: Callable[[], Awaitable[None]]) -> None:
        try:
            await call()
        except Exception:
            log.exception("afterwards_broken", kind=run.kind, run_id=str(run.id))
