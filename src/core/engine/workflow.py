"""Types of the engine that need no DBOS: workflows, queues and the state for the health check.

Importing DBOS takes seconds, and every process lists its workflows.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec

from core.engine.run_context import RunContext
from features.runs.domain.run import RunEnd


@dataclass(frozen=True, slots=True)
class RunResult:
    """``deliver`` writes the result in the transaction that charges for it, and is called again when that
    transaction fails. ``on_finished`` is called at most once after the run has ended: the process may die
    before the call.
    """

    end: RunEnd
    deliver: Callable[[], Awaitable[None]] | None = None
    on_finished: Callable[[], Awaitable[None]] | None = None


class Suspended:
    """The run is paused and has left the worker; it has not ended."""


SUSPENDED = Suspended()


@dataclass(frozen=True, slots=True)
class Workflow:
    """Program for runs of ``kind``. ``run`` must be deterministic, because it is replayed."""

    kind: str
    run: Callable[[RunContext], Awaitable[RunResult | Suspended]]


@dataclass(frozen=True, slots=True)
class SystemWorkflow:
    """Enqueued like a run, but without an account and without charge. ``run`` receives the executor id and
    the two arguments it was enqueued with. Another process may start it again when this one dies; any
    exception except a cancellation ends it.
    """

    name: str
    run: Callable[[str, str, str], Awaitable[str]]


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """Without ``worker_concurrency`` one poll would claim the whole backlog. A short poll interval starts
    runs sooner but costs statements while the queue is empty. ``runs.admit`` limits the runs of one account.
    """

    name: str
    worker_concurrency: int = 20
    global_concurrency: int | None = None
    poll_interval_s: float = 1.0


@dataclass(slots=True)
class EngineState:
    """State of this process's engine for the health check. ``executor`` is None while no engine runs."""

    is_wanted: bool = False
    executor: str | None = None
