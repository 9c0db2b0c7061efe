"""Execution of one dequeued run, with exactly one end whatever the workflow raises."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import structlog
from dbos import DBOS
from dbos import error as engine_error
from sqlalchemy.exc import SQLAlchemyError

from core.engine.run_context import RunCancelled, RunContext, StepFailed
from core.engine.workflow import RunResult, Suspended, SystemWorkflow, Workflow
from features.runs.application.ports import Executions
from features.runs.domain.run import Run, RunEnd
from shared.ids import AccountId, RunId
from shared.retry import until_database_answers

# Counts crashes and deployments; the limit stops a run that kills its worker each time.
ATTEMPTS_MAX = 10

log: structlog.stdlib.BoundLogger = structlog.get_logger("engine")


EXHAUSTED = RunResult(RunEnd(status="failed", outcome="internal_failure", error="attempts_exhausted"))
BROKEN = RunResult(RunEnd(status="failed", outcome="internal_failure", error="internal_error"))
DIVERGED = RunResult(RunEnd(status="failed", outcome="internal_failure", error="workflow_changed"))
CANCELLED = RunResult(RunEnd(status="cancelled", outcome="cancelled"))


class DbosCheckpoints:
    """Step results that DBOS stores for the workflow of the current task."""

    async def run_step(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401  any JSON value
        return await DBOS.run_step_async({"name": name}, call)

    async def patch(self, name: str) -> bool:
        return await DBOS.patch_async(name)


class ActiveRuns:
    """Runs and system workflows that this process executes."""

    def __init__(self) -> None:
        self._contexts: dict[RunId, RunContext] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting: set[asyncio.Task[Any]] = set()  # the subset of tasks that only wait for other runs
        self._changed = asyncio.Event()

    def add_task(self) -> asyncio.Task[Any]:
        """Register the current task, so that shutdown waits for it or leaves it to another worker."""
        task = asyncio.current_task()
        assert task is not None, "a coroutine that runs has a task"
        self._tasks.add(task)
        return task

    def remove_task(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._waiting.discard(task)
        self._changed.set()

    def add_run(self, context: RunContext, task: asyncio.Task[Any]) -> None:
        self._contexts[context.run.id] = context
        if not context.run.uses_concurrency_slot:
            self._waiting.add(task)

    def remove_run(self, context: RunContext) -> None:
        if self._contexts.get(context.run.id) is context:
            del self._contexts[context.run.id]

    def cancel(self, run_id: RunId) -> None:
        """Request cancellation; the workflow determines the outcome. Ignores runs of other processes."""
        if context := self._contexts.get(run_id):
            context.cancel()

    def wake(self, run_id: RunId | None) -> None:
        """Wake a parent run, because one of its child runs has ended."""
        if run_id is not None and (context := self._contexts.get(run_id)):
            context.wake()

    async def drain(self) -> None:
        """Wait until no task is active. Tasks that only wait for other runs are cancelled: another worker can
        resume them.
        """
        for task in self._waiting:
            task.cancel("stopped")
        while self._tasks:
            self._changed.clear()
            await self._changed.wait()

    def cancel_all(self) -> None:
        """Cancel all tasks without writing; another worker resumes the runs from their stored steps."""
        for task in self._tasks:
            task.cancel("stopped")

    async def cancel_all_and_wait(self) -> None:
        self.cancel_all()
        if self._tasks:
            await asyncio.wait(set(self._tasks))


class RunExecutor:
    """Executes runs under one executor id."""

    def __init__(self, executions: Executions, executor: str, active: ActiveRuns) -> None:
        self._executions = executions
        self._executor = executor
        self._active = active

    async def run(self, workflow: Workflow, account_id: str, run_id: str) -> str:
        """Begin, execute and finish a run. Begin and finish are not steps: begin counts each attempt, and
        finish is idempotent.
        """
        task = self._active.add_task()
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
            result = await self._execute(workflow, run, task) if outcome == "begun" else EXHAUSTED
            if isinstance(result, Suspended):
                return "paused"
            outcome = await self._finish(run, result)
            self._active.wake(run.parent_id)
            if outcome == "done" and result.on_finished is not None:
                await self._on_finished(run, result.on_finished)
            return outcome
        finally:
            self._active.remove_task(task)

    async def _execute(self, workflow: Workflow, run: Run, task: asyncio.Task[Any]) -> RunResult | Suspended:
        context = RunContext(run, self._executions, DbosCheckpoints())
        self._active.add_run(context, task)
        try:
            return await workflow.run(context)
        except RunCancelled:
            return CANCELLED
        except StepFailed as failure:
            return RunResult(RunEnd(status="failed", outcome="internal_failure", error=failure.code))
        except SQLAlchemyError as error:
            # DBOS could not store a step; the next attempt resumes after the last stored one.
            log.warning("step_not_stored", kind=run.kind, run_id=str(run.id), error=type(error).__name__)
            raise asyncio.CancelledError("step_not_stored") from error
        except engine_error.DBOSException as error:
            # The stored steps do not match the current workflow code.
            log.error("workflow_diverged", kind=run.kind, run_id=str(run.id), error=type(error).__name__)  # noqa: TRY400
            return DIVERGED
        except Exception:
            log.exception("workflow_failed", kind=run.kind, run_id=str(run.id))
            return BROKEN
        finally:
            self._active.remove_run(context)

    async def _finish(self, run: Run, result: RunResult) -> str:
        try:
            outcome = await until_database_answers(
                lambda: self._executions.finish(run, result.end, result.deliver)
            )
        except Exception:
            if result.deliver is None:
                raise
            # The failed transaction contained the charge too, so the run ends without one.
            log.exception("delivery_failed", kind=run.kind, run_id=str(run.id))
            outcome = await until_database_answers(lambda: self._executions.finish(run, BROKEN.end))
        if outcome == "fenced":
            raise asyncio.CancelledError(outcome)
        return outcome

    async def _on_finished(self, run: Run, call: Callable[[], Awaitable[None]]) -> None:
        try:
            await call()
        except Exception:
            log.exception("on_finished_failed", kind=run.kind, run_id=str(run.id))


async def run_system_workflow(
    workflow: SystemWorkflow, executor: str, active: ActiveRuns, first: str, second: str
) -> str:
    task = active.add_task()
    try:
        return await workflow.run(executor, first, second)
    finally:
        active.remove_task(task)
