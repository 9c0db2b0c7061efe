"""Run context of a workflow: checkpointed, cancellable steps and progress reports."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec
import structlog

from core.engine.parallel_steps import ReplayBarrier
from features.runs.application.ports import Executions
from features.runs.domain.run import Run
from shared.errors import DomainError, Unavailable
from shared.retry import DEFAULT_RETRY, OWN_FAILURES, RetryPolicy, until_database_answers

T = TypeVar("T")

log: structlog.stdlib.BoundLogger = structlog.get_logger("engine")


class Checkpoints(Protocol):
    """Stored step results of the workflow that is being executed."""

    async def run_step(self, name: str, call: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401  any JSON value
        """Return the stored result of the step, or the result of ``call``, stored."""
        ...

    async def patch(self, name: str) -> bool: ...


class RunCancelled(Exception):
    """A cancellation was requested, and the run stopped in ``step``."""

    def __init__(self, step: str) -> None:
        super().__init__(step)
        self.step = step

    def __str__(self) -> str:
        return f"Cancelled in {self.step}."


class StepFailed(Exception):
    """A step ended with an error that is reported to the client. Only the code and the text are stored, so
    replay raises the same exception as the first execution.
    """

    def __init__(self, step: str, code: str, text: str) -> None:
        super().__init__(step, code, text)
        self.step, self.code, self.text = step, code, text

    def __str__(self) -> str:
        return f"{self.step}: {self.text} ({self.code})"


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """Stored result of a step."""

    value: Any = None
    # Code and text; ``runs.copy_steps`` in SQL reads the name of this field.
    failure: tuple[str, str] | None = None
    is_cancelled: bool = False


class RunContext:
    def __init__(self, run: Run, executions: Executions, checkpoints: Checkpoints) -> None:
        self.run = run
        self._executions = executions
        self._checkpoints = checkpoints
        self._cancelled = asyncio.Event()
        self._woken = asyncio.Event()
        self._current_step = run.current_step or ""
        if run.should_cancel:
            self._cancelled.set()

    def cancel(self) -> None:
        """Interrupt the current step, or the next one when none is active."""
        self._cancelled.set()
        self._woken.set()

    def wake(self) -> None:
        """End the current ``pause`` or ``wait`` early."""
        self._woken.set()

    async def step(
        self,
        name: str,
        call: Callable[[], Awaitable[T]],
        *,
        returns: type[T],
        percent: int,
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> T:
        """Execute ``call`` and store its result; after a crash, return the stored result instead. ``call``
        may run again when the process dies inside it, so its effects must be idempotent by reference.
        ``percent``: progress of the run when the step begins. Raises StepFailed and RunCancelled.
        """

        async def attempt() -> Any:  # noqa: ANN401  any JSON value
            return msgspec.to_builtins(await self._attempt(name, call, percent, retry))

        # Do not await before this line: DBOS numbers the steps of a workflow in the order of their calls.
        record = msgspec.convert(await self._checkpoints.run_step(name, attempt), _Record)
        if record.is_cancelled:
            raise RunCancelled(name)
        if record.failure is not None:
            raise StepFailed(name, *record.failure)
        return msgspec.convert(record.value, returns)

    async def parallel(
        self,
        calls: Mapping[str, Callable[[], Awaitable[T]]],
        *,
        returns: type[T],
        percents: tuple[int, int],
        retry: RetryPolicy = DEFAULT_RETRY,
    ) -> dict[str, T]:
        """Execute steps in parallel and return their results by name. ``percents``: progress when they begin
        and when the last one has ended. Raises as ``step`` does: the first failure cancels the other steps,
        and no result of them is stored. After a crash they do not start again either, because ReplayBarrier
        waits for all stored results first.
        """
        barrier = ReplayBarrier(calls)
        begin, end = percents

        async def one(name: str, call: Callable[[], Awaitable[T]]) -> T:
            async with barrier.track(name):
                when_known = partial(barrier.wait_then_run, name, call)
                value = await self.step(name, when_known, returns=returns, percent=begin, retry=retry)
            if barrier.has_run(name):
                percent = begin + (end - begin) * barrier.ended_count // len(calls)
                await self.report(self._current_step, percent)
            return value

        tasks: dict[str, asyncio.Task[T]] = {}
        try:
            async with asyncio.TaskGroup() as group:
                for name, call in calls.items():
                    tasks[name] = group.create_task(one(name, call))
        except BaseExceptionGroup:
            raise _most_important(tasks.values()) from None
        return {name: task.result() for name, task in tasks.items()}

    async def pause(self, seconds: float, *, step: str) -> None:
        """Sleep until the time is over or ``wake`` is called; not a step. Raises RunCancelled immediately."""
        self.check_cancelled(step)
        await self.wait(seconds)
        self.check_cancelled(step)

    async def wait(self, seconds: float) -> None:
        """Like ``pause``, but without RunCancelled: for a cancelled run that waits for its child runs."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()

    def check_cancelled(self, step: str) -> None:
        """Raise RunCancelled when a cancellation was requested."""
        if self._cancelled.is_set():
            raise RunCancelled(step)

    async def report(self, step: str, percent: int) -> None:
        """Store the progress. Raises CancelledError if this worker was fenced."""
        await until_database_answers(lambda: self.report_within(step, percent))

    async def report_within(self, step: str, percent: int) -> None:
        """Like ``report``, in the open transaction: a fenced worker cannot commit its other writes. Does not
        retry, because a failed transaction cannot continue.
        """
        self._current_step = step
        outcome = await self._executions.progress(self.run, percent, step=step)
        if outcome != "done":
            raise asyncio.CancelledError(outcome)

    async def suspend_within(self, step: str, percent: int, *, credits_needed: int) -> None:
        """Pause the run until its account can pay ``credits_needed``. Must be called in the transaction in
        which the hold failed; the workflow returns SUSPENDED after the commit. Raises RunCancelled.
        """
        outcome = await self._executions.pause(self.run, percent, step=step, credits_needed=credits_needed)
        if outcome == "cancelling":
            raise RunCancelled(step)
        if outcome != "done":
            raise asyncio.CancelledError(outcome)

    async def patch(self, name: str) -> bool:
        """Return True when this run follows the changed workflow, False when it had passed this point before
        the change was deployed.
        """
        return await self._checkpoints.patch(name)

    async def _attempt(
        self, name: str, call: Callable[[], Awaitable[T]], percent: int, retry: RetryPolicy
    ) -> _Record:
        await self.report(name, percent)  # before external effects: a fenced worker stops here
        attempt = 0
        while True:
            try:
                return _Record(value=await self._interruptible(name, call))
            except RunCancelled:
                return _Record(is_cancelled=True)
            except Unavailable as failure:
                if failure.code not in OWN_FAILURES:
                    attempt += 1
                if attempt >= retry.attempts_max:
                    return _Record(failure=(failure.code, str(failure)))
                wait_s = retry.wait_s(max(attempt - 1, 0), failure.retry_after_s)
                log.info("step_retried", step=name, run_id=str(self.run.id), error=failure.code)
            except DomainError as error:
                return _Record(failure=(error.code, str(error)))
            with suppress(RunCancelled):  # the next attempt detects the cancellation again and stores it
                await self._interruptible(name, lambda seconds=wait_s: asyncio.sleep(seconds))

    async def _interruptible(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        self.check_cancelled(name)
        task = asyncio.ensure_future(call())
        task.add_done_callback(_retrieve_exception)
        cancelled = asyncio.create_task(self._cancelled.wait())
        try:
            await asyncio.wait({task, cancelled}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            cancelled.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})  # its cleanup may have to stop an external operation
        if task.cancelled():
            raise RunCancelled(name)
        return task.result()  # a result that arrived together with the cancellation counts


def _retrieve_exception(task: asyncio.Future[Any]) -> None:
    """Mark the exception as retrieved: asyncio logs exceptions of abandoned tasks otherwise."""
    if not task.cancelled():
        task.exception()


def _most_important(tasks: Iterable[asyncio.Task[Any]]) -> BaseException:
    """Return the error to raise for parallel steps: StepFailed first, in step order; RunCancelled last."""
    raised = [error for task in tasks if not task.cancelled() and (error := task.exception())]
    return min(raised, key=lambda error: (isinstance(error, RunCancelled), not isinstance(error, StepFailed)))
