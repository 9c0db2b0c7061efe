"""System workflows: enqueued like runs, but without an account and without charge."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from core.engine.run_executor import ActiveRuns


@dataclass(frozen=True, slots=True)
class SystemWorkflow:
    """``carry_out`` receives the executor id and the two arguments it was enqueued with. Another process may
    start it again when this one dies; any exception except a cancellation ends it.
    """

    name: str
    carry_out: Callable[[str, str, str], Awaitable[str]]


async def carry_out_routine(
    routine: SystemWorkflow, executor: str, running: ActiveRuns, first: str, second: str
) -> str:
    """Registers the task in ``running``, so that shutdown waits for it or leaves it to another worker."""
    task = running.enter()
    try:
        return await routine.carry_out(executor, first, second)
    finally:
        running.leave(task)
