"""A run under way, as its workflow sees it: steps that survive the process, and can be interrupted."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
import structlog
from dbos import DBOS

from core.engine.parallel_steps import ReplayBarrier
from core.engine.retry import DEFAULT_RETRY, OWN_FAILURES, RetryPolicy, until_database_answers
from features.runs.application.ports import Executions
from features.runs.domain.run import Run
from shared.errors import DomainError, Unavailable

T = TypeVar("T")

log: structlog.stdlib.BoundLogger = structlog.get_logger("engine")


class RunCancelled(Exception):
    """Somebody wanted the run to stop, and it stopped in this step."""

    def __init__(self, step: str) -> None:
        super().__init__(step)
        self.step = step

    def __str__(self) -> str:
        return f"Cancelled in {self.step}."


class StepFailed(Exception):
    """A step ended with an error that a client is told. The same when it is replayed as when it happened,
    which is why the error itself is not raised: of that only this is kept.
    """

    def __init__(self, step: str, code: str, text: str) -> None:
        super().__init__(step, code, text)
        self.step, self.code, self.text = step, code, text

    def __str__(self) -> str:
        return f"{self.step}: {self.text} ({self.code})"


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of a step."""

    value: Any = None
    refusal: tuple[str, str] | None = None  # code, text
    is_cancelled: bool = False


class RunContext:
    def __init__(self, run: Run, executions: Executions) -> None:
        self.run = run
        self._executions = executions
        self._cancelled = asyncio.Event()
        self._woken = asyncio.Event()
        self._place = run.current_step or ""
        if run.should_cancel:
            self._cancelled.set()

    def cancel(self) -> None:
        """Interrupt the step that runs, or the next one."""
        self._cancelled.set()
        self._woken.set()

    def wake(self) -> None:
        """End its pause: something happened that it may be waiting for."""
        self._woken.set()

    async def step(
        self,
        name: str,
        call: Callable[[], Awaitable[T]],
        *,
        returns: type[T],
        percent: int,
        patience: RetryPolicy = DEFAULT_RETRY,
    ) -> T:
        """Do it once and keep what it returns; after a crash the kept value is returned instead. It may
        run again when the process dies inside it, so its effects carry references. ``percent``: how far
        the run is when the step begins. Raises StepRefused and RunCancelled.
        """

        async def attempt() -> Any:  # noqa: ANN401  whatever JSON can hold
            return msgspec.to_builtins(await self._attempt(name, call, percent, patience))

        # Nothing is awaited before this: steps of one workflow are numbered in the order of their calls.
        kept = await DBOS.run_step_async({"name": name}, attempt)
        record = msgspec.convert(kept, _Record)
        if record.is_cancelled:
            raise RunCancelled(name)
        if record.refusal is not None:
            raise StepFailed(name, *record.refusal)
        return msgspec.convert(record.value, returns)

    async def together(
        self,
        calls: Mapping[str, Callable[[], Awaitable[T]]],
        *,
        returns: type[T],
        percents: tuple[int, int],
        patience: RetryPolicy = DEFAULT_RETRY,
    ) -> dict[str, T]:
        """Steps side by side, and what they return by their names. ``percents``: how far the run is when they
        begin, and when the last has ended. Raises as ``step`` does: as soon as one is refused the others
        are interrupted where they are, and nothing is kept of them. After a crash they are not begun
        again either, because of what was kept everybody knows before anybody begins.
        """
        company = ReplayBarrier(calls)
        begin, end = percents

        async def one(name: str, call: Callable[[], Awaitable[T]]) -> T:
            async with company.settling(name):
                value = await self.step(
                    name, lambda: company.enter(name, call), returns=returns, percent=begin, patience=patience
                )
            if company.has_entered(name):
                await self.report(self._place, begin + (end - begin) * company.ended_count // len(calls))
            return value

        tasks: dict[str, asyncio.Task[T]] = {}
        try:
            async with asyncio.TaskGroup() as group:
                for name, call in calls.items():
                    tasks[name] = group.create_task(one(name, call))
        except BaseExceptionGroup:
            raise _weightiest(tasks.values()) from None
        return {name: task.result() for name, task in tasks.items()}

    async def pause(self, seconds: float, *, place: str) -> None:
        """Until then, or until it is woken. Nothing is kept of it. Raises RunCancelled, at once."""
        self.heed(place)
        await self.rest(seconds)
        self.heed(place)

    async def rest(self, seconds: float) -> None:
        """The same for a run that is being cancelled and has something left to wait for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()

    def heed(self, place: str) -> None:
        """Raises RunCancelled when somebody wants the run to stop."""
        if self._cancelled.is_set():
            raise RunCancelled(place)

    async def report(self, place: str, percent: int) -> None:
        """How far it is, and where. Whoever was given up finds out here."""
        await until_database_answers(lambda: self.report_within(place, percent))

    async def report_within(self, place: str, percent: int) -> None:
        """The same in the transaction that is open: what else it writes is written by nobody who was given
        up. Not persistent, because a transaction is not.
        """
        self._place = place
        outcome = await self._executions.progress(self.run, percent, step=place)
        if outcome != "done":
            raise asyncio.CancelledError(outcome)

    async def suspend_within(self, place: str, percent: int, *, credits_needed: int) -> None:
        """Pause the run until its account can pay ``credits_needed``, in the transaction that is open, in
        which a hold of them was refused. The workflow returns SUSPENDED after its commit. Raises
        RunCancelled.
        """
        outcome = await self._executions.pause(self.run, percent, step=place, credits_needed=credits_needed)
        if outcome == "cancelling":
            raise RunCancelled(place)
        if outcome != "done":
            raise asyncio.CancelledError(outcome)

    async def patch(self, name: str) -> bool:
        """Whether this run goes by the changed workflow: True for those that have not yet come here, False
        for those that were past it when the change came.
        """
        return await DBOS.patch_async(name)

    async def _attempt(
        self, name: str, call: Callable[[], Awaitable[T]], percent: int, patience: RetryPolicy
    ) -> _Record:
        await self.report(name, percent)  # before anything happens outside
        attempt = 0
        while True:
            try:
                return _Record(value=await self._interruptible(name, call))
            except RunCancelled:
                return _Record(is_cancelled=True)
            except Unavailable as failure:
                if failure.code not in OWN_FAILURES:
                    attempt += 1
                if attempt >= patience.attempts_max:
                    return _Record(refusal=(failure.code, str(failure)))
                wait_s = patience.wait_s(max(attempt - 1, 0), failure.retry_after_s)
                log.info("step_retried", step=name, run_id=str(self.run.id), error=failure.code)
            except DomainError as refusal:
                return _Record(refusal=(refusal.code, str(refusal)))
            with suppress(RunCancelled):  # found again, and kept, by the next attempt
                await self._interruptible(name, lambda seconds=wait_s: asyncio.sleep(seconds))

    async def _interruptible(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        self.heed(name)
        doing = asyncio.ensure_future(call())
        doing.add_done_callback(_heard)
        cancelled = asyncio.create_task(self._cancelled.wait())
        try:
            await asyncio.wait({doing, cancelled}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            cancelled.cancel()
            if not doing.done():
                doing.cancel()
                await asyncio.wait({doing})  # it may have something to stop elsewhere
        if doing.cancelled():
            raise RunCancelled(name)
        return doing.result()  # what is done counts, even in the last moment


def _heard(task: asyncio.Future[Any]) -> None:
    """Whoever stopped may not ask what became of it; asyncio would complain."""
    if not task.cancelled():
        task.exception()


def _weightiest(tasks: Iterable[asyncio.Task[Any]]) -> BaseException:
    """Of what steps side by side have raised: the first refusal in their order; a cancellation last."""
    raised = [error for task in tasks if not task.cancelled() and (error := task.exception())]
    return min(raised, key=lambda error: (isinstance(error, RunCancelled), not isinstance(error, StepFailed)))
