"""The durable engine, on our database and with our runs."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from core.engine.configuration import EngineDatabase
from core.engine.engine import EngineParts
from core.engine.execution import Workflow
from core.engine.queues import Queue
from core.wiring.place import (
    Addresses,
    Surroundings,
    apply_migrations,
    current_addresses,
    database_addresses,
    open_database,
)
from features.runs.application.ports import WorkerRegistry
from infrastructure.database.pool import open_pool
from infrastructure.database.runs import PostgresRuns
from infrastructure.database.sessions import AdminSession, Database
from infrastructure.database.workers import PostgresWorkerRegistry

# The hot ones are looked at often; the others once a second.
QUEUES = (Queue(name="runs", poll_interval_s=0.2),)


def no_workflows(_: Database) -> tuple[Workflow, ...]:
    return ()


@asynccontextmanager
async def opened_parts(
    place: Surroundings,
    *,
    workflows: Callable[[Database], tuple[Workflow, ...]] = no_workflows,
    queues: tuple[Queue, ...] = QUEUES,
    listens_to: tuple[str, ...] | None = None,
) -> AsyncGenerator[EngineParts]:
    """For a process that does nothing but work."""
    settings = place.settings
    async with database_addresses(settings) as addresses:
        if settings.is_local and addresses.owner:
            await apply_migrations(settings, addresses)
        async with open_database(place, addresses) as database:
            yield engine_parts(
                place,
                addresses,
                database,
                workflows=workflows(database),
                queues=queues,
                listens_to=listens_to,
            )


def engine_parts(
    place: Surroundings,
    addresses: Addresses,
    database: Database,
    *,
    workflows: tuple[Workflow, ...],
    queues: tuple[Queue, ...],
    listens_to: tuple[str, ...] | None = None,
) -> EngineParts:
    """``listens_to``: the names of the queues to work on; all of them by default."""
    pools_transactions = place.settings.database_pooler == "transaction"

    async def admin_url() -> str:
        return (await current_addresses(place, addresses)).admin

    @asynccontextmanager
    async def open_registry() -> AsyncGenerator[WorkerRegistry]:
        async with open_pool(admin_url, size_max=1, statement_cache=not pools_transactions) as pool:
            yield PostgresWorkerRegistry(AdminSession(pool, "worker registry"))

    return EngineParts(
        database=EngineDatabase(addresses.admin, pools_transactions),
        open_registry=open_registry,
        executions=PostgresRuns(database.admin("runs")),
        workflows=workflows,
        queues=queues,
        listens_to=tuple(queue.name for queue in queues) if listens_to is None else listens_to,
        drain_s=place.settings.drain_s,
    )
