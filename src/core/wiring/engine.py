"""Configuration of the durable engine: our database, workflows and queues."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from core.engine.configuration import EngineDatabase
from core.engine.engine import EngineConfig
from core.engine.workflow import Queue, Workflow
from core.processes.background import BackgroundService
from core.wiring.attendants import attendants_on
from core.wiring.bootstrap import Runtime, current_addresses
from core.wiring.cron import cron_routine
from core.wiring.resources import Resources, open_foundation
from core.wiring.workflows import workflows_of
from features.runs.application.ports import WorkerRegistry
from infrastructure.database.clients import AdminClient
from infrastructure.database.pool import open_pool
from infrastructure.database.runs.runs import PostgresRuns
from infrastructure.database.runs.workers import PostgresWorkerRegistry

# A bulk run only waits for its runs, so a worker can hold many of them and poll for them less often.
QUEUES = (
    Queue(name="runs", poll_interval_s=0.1, worker_concurrency=20),
    Queue(name="bulk", poll_interval_s=0.5, worker_concurrency=50),
    Queue(name="cron", poll_interval_s=1.0, worker_concurrency=1),
)
# Part of the drain time that is reserved for releasing unfinished workflows to other workers.
HAND_ON_S = 2.0


def workflows_on(foundation: Resources) -> tuple[Workflow, ...]:
    return workflows_of(foundation.database, foundation.books, foundation.providers)


@asynccontextmanager
async def opened_duties(
    place: Runtime, *, listens_to: tuple[str, ...] | None = None
) -> AsyncGenerator[tuple[EngineConfig, dict[str, BackgroundService]]]:
    """Engine configuration and background services of a process that is only a worker."""
    async with open_foundation(place) as foundation:
        yield parts_on(foundation, listens_to=listens_to), attendants_on(foundation)


def parts_on(
    foundation: Resources,
    *,
    workflows: tuple[Workflow, ...] | None = None,
    queues: tuple[Queue, ...] = QUEUES,
    listens_to: tuple[str, ...] | None = None,
) -> EngineConfig:
    """``workflows`` defaults to all workflows, ``listens_to`` (names of queues) to all queues."""
    place, addresses = foundation.place, foundation.addresses
    pools_transactions = place.settings.database_pooler == "transaction"
    drain_s = place.settings.drain_s

    async def admin_url() -> str:
        return (await current_addresses(place, addresses)).admin

    @asynccontextmanager
    async def open_registry() -> AsyncGenerator[WorkerRegistry]:
        async with open_pool(admin_url, size_max=1, statement_cache=not pools_transactions) as pool:
            yield PostgresWorkerRegistry(AdminClient(pool, "worker registry"))

    return EngineConfig(
        database=EngineDatabase(addresses.admin, pools_transactions),
        open_registry=open_registry,
        executions=PostgresRuns(foundation.database.admin("runs")),
        workflows=workflows_on(foundation) if workflows is None else workflows,
        queues=queues,
        listens_to=tuple(queue.name for queue in queues) if listens_to is None else listens_to,
        drain_s=max(drain_s - HAND_ON_S, drain_s / 2),
        warm_up=foundation.providers.prepare,
        system_workflows=(cron_routine(foundation),),
    )
