"""The durable engine, on our database and with our runs."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from core.engine.configuration import EngineDatabase
from core.engine.engine import EngineParts
from core.engine.execution import Workflow
from core.engine.queues import Queue
from core.wiring.costs import open_books
from core.wiring.outside import simulators_of
from core.wiring.place import (
    Addresses,
    Surroundings,
    apply_migrations,
    current_addresses,
    database_addresses,
    open_database,
)
from core.wiring.providers import open_providers
from core.wiring.workflows import workflows_of
from features.runs.application.ports import WorkerRegistry
from infrastructure.database.pool import open_pool
from infrastructure.database.runs import PostgresRuns
from infrastructure.database.sessions import AdminSession, Database
from infrastructure.database.workers import PostgresWorkerRegistry

# A bulk only waits for its runs: many of them are no work, and a moment later is soon enough.
QUEUES = (
    Queue(name="runs", poll_interval_s=0.1, worker_concurrency=20),
    Queue(name="bulk", poll_interval_s=0.5, worker_concurrency=50),
)


@asynccontextmanager
async def opened_parts(
    place: Surroundings,
    *,
    workflows: Callable[[Database], tuple[Workflow, ...]] | None = None,
    queues: tuple[Queue, ...] = QUEUES,
    listens_to: tuple[str, ...] | None = None,
) -> AsyncGenerator[EngineParts]:
    """For a process that does nothing but work. ``workflows``: the product's by default."""
    settings = place.settings
    async with database_addresses(settings) as addresses:
        if settings.is_local and addresses.owner:
            await apply_migrations(settings, addresses)
        async with AsyncExitStack() as stack:
            database = await stack.enter_async_context(open_database(place, addresses))
            if workflows is None:
                made = await stack.enter_async_context(_opened_workflows(place, database))
            else:
                made = workflows(database)
            yield engine_parts(
                place, addresses, database, workflows=made, queues=queues, listens_to=listens_to
            )


@asynccontextmanager
async def _opened_workflows(place: Surroundings, database: Database) -> AsyncGenerator[tuple[Workflow, ...]]:
    async with (
        open_books(database) as books,
        simulators_of(place) as simulators,
        open_providers(place, database, books, simulators) as providers,
    ):
        yield workflows_of(database, books, providers)


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
