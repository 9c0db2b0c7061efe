"""Plug-in slices: what a slice declares to every process, and what it contributes to an API or a worker.

Adding a slice edits one list, ``core.wiring.slices.SLICES``; the application, the worker, the scheduler, the
health checks and the migrations iterate over it.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from litestar import Controller

from core.api.health import HealthCheck
from core.cron.job_runner import JobHandler
from core.engine.workflow import EngineState, Queue, Workflow
from core.processes.background import BackgroundService
from core.processes.listen_address import ListenAddress
from core.wiring.bootstrap import DatabaseUrls, Runtime
from core.wiring.cost_recorders import CostRecorders
from core.wiring.payments import Payments
from core.wiring.providers import Providers
from features.operations.domain.jobs import Job
from features.operations.domain.retention import RetentionRule
from features.runs.domain.kinds import RunKind
from infrastructure.database.clients import Database
from simulators.supervisor import Simulators

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiParts:
    """``dependencies`` have the parameter names of the handlers. ``services`` run in every API process."""

    dependencies: Mapping[str, object] = field(default_factory=dict[str, object])
    health_checks: Mapping[str, HealthCheck] = field(default_factory=dict[str, HealthCheck])
    services: Mapping[str, BackgroundService] = field(default_factory=dict[str, BackgroundService])


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    """``job_handlers`` have the names of the jobs. ``services`` run in every worker process."""

    workflows: tuple[Workflow, ...] = ()
    job_handlers: Mapping[str, JobHandler] = field(default_factory=dict[str, JobHandler])
    services: Mapping[str, BackgroundService] = field(default_factory=dict[str, BackgroundService])


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """``retention`` maps a retention job to the rules of the tables that it purges, dependent tables first.
    ``migrations`` is the folder of the slice's own migrations. ``raw_paths`` receive the body as it was sent,
    because its signature covers every byte.
    """

    name: str
    controllers: tuple[type[Controller], ...] = ()
    raw_paths: tuple[str, ...] = ()
    run_kinds: tuple[RunKind, ...] = ()
    queues: tuple[Queue, ...] = ()
    jobs: tuple[Job, ...] = ()
    retention: Mapping[str, tuple[RetentionRule, ...]] = field(
        default_factory=dict[str, tuple[RetentionRule, ...]]
    )
    migrations: Path | None = None
    api: "Callable[[Resources], ApiParts]" = field(default=lambda _: ApiParts())
    worker: "Callable[[Resources], WorkerParts]" = field(default=lambda _: WorkerParts())


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Connections and clients of one process, which its slices share. What a slice pushes to ``closing`` is
    closed before the others.
    """

    runtime: Runtime
    slices: tuple[Slice, ...]
    closing: AsyncExitStack
    addresses: DatabaseUrls
    database: Database
    costs: CostRecorders
    simulators: Simulators
    providers: Providers
    payments: Payments
    listen_address: ListenAddress
    engine: EngineState = field(default_factory=EngineState)
    event_stored: asyncio.Event = field(default_factory=asyncio.Event)  # set when a Stripe event is stored

    @property
    def jobs(self) -> dict[str, Job]:
        return {job.name: job for slice_ in self.slices for job in slice_.jobs}

    @property
    def run_kinds(self) -> dict[str, RunKind]:
        return {kind.name: kind for slice_ in self.slices for kind in slice_.run_kinds}

    def retention(self, job: str) -> tuple[RetentionRule, ...]:
        """A slice is listed after the slices it depends on, so dependent tables come first in reverse."""
        return tuple(rule for slice_ in reversed(self.slices) for rule in slice_.retention.get(job, ()))


def queues_of(slices: Iterable[Slice]) -> tuple[Queue, ...]:
    return tuple(queue for slice_ in slices for queue in slice_.queues)


def migration_folders(slices: Iterable[Slice]) -> dict[str, Path]:
    return {slice_.name: slice_.migrations for slice_ in slices if slice_.migrations is not None}


def merged(parts: Iterable[Mapping[str, T]]) -> dict[str, T]:
    """Raises ValueError if two slices use one name."""
    names: dict[str, T] = {}
    for part in parts:
        if duplicates := names.keys() & part.keys():
            raise ValueError(f"Declared by two slices: {', '.join(sorted(duplicates))}")
        names |= part
    return names
