"""Work of the system's own: in the engine's queues like a run, but nobody's, and paid for by nobody."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from core.engine.run_executor import ActiveRuns


@dataclass(frozen=True, slots=True)
class SystemWorkflow:
    """``carry_out`` is given the executor and the two words it was enqueued with. It may be begun again by
    another process when this one dies; what it raises besides a cancellation ends it.
    """

    name: str
    carry_out: Callable[[str, str, str], Awaitable[str]]


async def carry_out_routine(
    routine: SystemWorkflow, executor: str, running: ActiveRuns, first: str, second: str
) -> str:
    """It counts as running: who stops waits for it, or leaves it to others."""
    task = running.enter()
    try:
        return await routine.carry_out(executor, first, second)
    finally:
        running.leave(task)
