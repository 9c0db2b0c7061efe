"""Resources of a process. A process that runs both the API and the engine opens them once."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from core.api.health import VERSION
from core.processes.listen_address import ListenAddress
from core.wiring.bootstrap import Runtime, apply_migrations, database_addresses, open_database
from core.wiring.cost_recorders import open_cost_recorders
from core.wiring.payments import open_payments
from core.wiring.providers import open_providers, simulators_of
from core.wiring.slice import Resources, Slice, migration_folders
from core.wiring.slices import SLICES
from infrastructure.monitoring.sentry import sentry


@asynccontextmanager
async def open_resources(runtime: Runtime, slices: tuple[Slice, ...] = SLICES) -> AsyncGenerator[Resources]:
    settings, listen_address = runtime.settings, ListenAddress()
    if settings.embedded_database:
        runtime.report_step(f"Starting PostgreSQL in {settings.data_dir / 'postgres'}")
    async with database_addresses(settings) as addresses:
        if settings.is_local and addresses.owner:
            runtime.report_step("Migrating the database")
            await apply_migrations(settings, addresses, migration_folders(slices))
        async with (
            sentry(settings.sentry_dsn, environment=settings.environment, release=VERSION),
            open_database(runtime, addresses) as database,
            open_cost_recorders(database) as costs,
            simulators_of(runtime) as simulators,
            open_providers(runtime, database, costs, simulators) as providers,
            open_payments(runtime, database, simulators, listen_address) as payments,
            AsyncExitStack() as closing,
        ):
            yield Resources(
                runtime=runtime,
                slices=slices,
                closing=closing,
                addresses=addresses,
                database=database,
                costs=costs,
                simulators=simulators,
                providers=providers,
                payments=payments,
                listen_address=listen_address,
            )
