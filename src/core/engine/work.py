"""A run under way, as its workflow sees it: steps that survive the process, and can be interrupted."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from dbos import DBOS

from features.runs.application.ports import Executions
from features.runs.domain.run import Run
from shared.errors import DomainError, Unavailable

T = TypeVar("T")
# Our own database's: a run waits for it however long it takes, as everything else does.
DATABASE_AWAY = "database_unavailable"
WAIT_S_FIRST = 0.1
WAIT_S_MAX = 2.0


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How often a step is tried when others fail (``Unavailable``), and how long is waited in between.
    A refusal, or a mistake of ours, is never tried again.
    """

    attempts_max: int = 4
    wait_s_first: float = 0.5
    wait_s_max: float = 30.0

    def wait_s(self, attempt: int, asked_s: int | None) -> float:
        """After so many attempts; whoever failed may have asked for a certain time."""
        return min(max(self.wait_s_first * 2.0**attempt, asked_s or 0), self.wait_s_max)


PATIENT = Patience()


class RunCancelled(Exception):
    """Somebody wanted the run to stop, and it stopped in this step."""

    def __init__(self, step: str) -> None:
        super().__init__(step)
        self.step = step

    def __str__(self) -> str:
        return f"Cancelled in {self.step}."


class StepRefused(Exception):
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


class Work:
    def __init__(self, run: Run, executions: Executions) -> None:
        self.run = run
        self._executions = executions
        self._cancelled = asyncio.Event()
        if run.should_cancel:
            self._cancelled.set()

    def cancel(self) -> None:
        """Interrupt the step that runs, or the next one."""
        self._cancelled.set()

    async def step(
        self,
        name: str,
        call: Callable[[], Awaitable[T]],
        *,
        returns: type[T],
        percent: int,
        patience: Patience = PATIENT,
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
            raise StepRefused(name, *record.refusal)
        return msgspec.convert(record.value, returns)

    async def patch(self, name: str) -> bool:
        """Whether this run goes by the changed workflow: True for those that have not yet come here, False
        for those that were past it when the change came.
        """
        return await DBOS.patch_async(name)

    async def _attempt(
        self, name: str, call: Callable[[], Awaitable[T]], percent: int, patience: Patience
    ) -> _Record:
        await self._report(name, percent)
        attempt = 0
        while True:
            try:
                return _Record(value=await self._interruptible(name, call))
            except RunCancelled:
                return _Record(is_cancelled=True)
            except Unavailable as failure:
                if failure.code != DATABASE_AWAY:
                    attempt += 1
                if attempt >= patience.attempts_max:
                    return _Record(refusal=(failure.code, str(failure)))
                wait_s = patience.wait_s(max(attempt - 1, 0), failure.retry_after_s)
            except DomainError as refusal:
                return _Record(refusal=(refusal.code, str(refusal)))
            with suppress(RunCancelled):  # found again, and kept, by the next attempt
                await self._interruptible(name, lambda seconds=wait_s: asyncio.sleep(seconds))

    async def _report(self, name: str, percent: int) -> None:
        """Before anything happens outside: whoever was given up finds out here."""
        outcome = await persistently(lambda: self._executions.progress(self.run, percent, step=name))
        if outcome != "done":
            raise asyncio.CancelledError(outcome)

    async def _interruptible(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        if self._cancelled.is_set():
            raise RunCancelled(name)
        doing = asyncio.ensure_future(call())
        cancelled = asyncio.create_task(self._cancelled.wait())
        try:
            await asyncio.wait({doing, cancelled}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                doing.cancel()
                await asyncio.wait({doing})
            if doing.cancelled():
                raise RunCancelled(name)
            return doing.result()  # what is done counts, even in the last moment
        finally:
            cancelled.cancel()
            doing.cancel()


async def persistently(call: Callable[[], Awaitable[T]]) -> T:
    """Ask our own database until it answers: without it there is nothing else to do."""
    wait_s = WAIT_S_FIRST
    while True:
        try:
            return await call()
        except Unavailable:
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, WAIT_S_MAX)
