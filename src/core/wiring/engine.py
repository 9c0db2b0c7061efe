"""Configuration of the durable engine: our database, and the workflows, queues and jobs of all slices."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from core.cron.job_runner import JobRunner
from core.engine.configuration import EngineDatabase
from core.engine.engine import EngineConfig
from core.engine.workflow import Queue, SystemWorkflow
from core.wiring.bootstrap import current_addresses
from core.wiring.slice import Resources, WorkerParts, merged, queues_of
from features.runs.application.ports import WorkerRegistry
from infrastructure.database.clients import AdminClient
from infrastructure.database.operations.cron import PostgresCron
from infrastructure.database.pool import open_pool
from infrastructure.database.runs.runs import PostgresRuns
from infrastructure.database.runs.workers import PostgresWorkerRegistry

# Part of the drain time that is reserved for releasing unfinished workflows to other workers.
REASSIGN_S = 2.0


def worker_parts(resources: Resources) -> WorkerParts:
    """The contributions of all slices to a worker."""
    parts = [slice_.worker(resources) for slice_ in resources.slices]
    return WorkerParts(
        workflows=tuple(workflow for part in parts for workflow in part.workflows),
        job_handlers=merged(part.job_handlers for part in parts),
        services=merged(part.services for part in parts),
    )


def engine_config(
    resources: Resources,
    parts: WorkerParts,
    *,
    queues: tuple[Queue, ...] | None = None,
    listens_to: tuple[str, ...] | None = None,
) -> EngineConfig:
    """``queues`` defaults to those of the slices, ``listens_to`` (names of queues) to all of them."""
    settings, database = resources.runtime.settings, resources.database
    queues = queues_of(resources.slices) if queues is None else queues
    jobs = JobRunner(resources.jobs, parts.job_handlers, PostgresCron(database.admin("cron")))
    return EngineConfig(
        database=EngineDatabase(resources.addresses.admin, settings.database_pooler == "transaction"),
        open_registry=partial(_open_registry, resources),
        executions=PostgresRuns(database.admin("runs")),
        workflows=parts.workflows,
        queues=queues,
        listens_to=tuple(queue.name for queue in queues) if listens_to is None else listens_to,
        drain_s=max(settings.drain_s - REASSIGN_S, settings.drain_s / 2),
        warm_up=resources.providers.prepare,
        # ``scheduling.claim`` enqueues under this name.
        system_workflows=(SystemWorkflow("cron_job", jobs.run),),
    )


@asynccontextmanager
async def _open_registry(resources: Resources) -> AsyncGenerator[WorkerRegistry]:
    async def admin_url() -> str:
        return (await current_addresses(resources.runtime, resources.addresses)).admin

    statement_cache = resources.runtime.settings.database_pooler != "transaction"
    async with open_pool(admin_url, size_max=1, statement_cache=statement_cache) as pool:
        yield PostgresWorkerRegistry(AdminClient(pool, "worker registry"))
