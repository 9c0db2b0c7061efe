"""Resources that the API and the engine share. A process that runs both opens them once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from core.api.health import VERSION
from core.engine.workflow import EngineState
from core.processes.listen_address import ListenAddress
from core.wiring.bootstrap import (
    DatabaseUrls,
    Runtime,
    apply_migrations,
    database_addresses,
    open_database,
)
from core.wiring.costs import CostRecorders, open_books
from core.wiring.payments import Payments, open_payments
from core.wiring.provider_endpoints import simulators_of
from core.wiring.providers import Providers, open_providers
from infrastructure.database.clients import Database
from infrastructure.monitoring.sentry import sentry
from simulators.supervisor import Simulators


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    place: Runtime
    addresses: DatabaseUrls
    database: Database
    books: CostRecorders
    simulators: Simulators
    providers: Providers
    payments: Payments
    serving: ListenAddress
    engine: EngineState = field(default_factory=EngineState)
    arrivals: asyncio.Event = field(default_factory=asyncio.Event)  # set when a Stripe event has been stored


@asynccontextmanager
async def open_foundation(place: Runtime) -> AsyncGenerator[Resources]:
    settings, serving = place.settings, ListenAddress()
    if settings.embedded_database:
        place.report_step(f"Starting PostgreSQL in {settings.data_dir / 'postgres'}")
    async with database_addresses(settings) as addresses:
        if settings.is_local and addresses.owner:
            place.report_step("Migrating the database")
            await apply_migrations(settings, addresses)
        async with (
            sentry(settings.sentry_dsn, environment=settings.environment, release=VERSION),
            open_database(place, addresses) as database,
            open_books(database) as books,
            simulators_of(place) as simulators,
            open_providers(place, database, books, simulators) as providers,
            open_payments(place, database, simulators, serving) as payments,
        ):
            yield Resources(
                place=place,
                addresses=addresses,
                database=database,
                books=books,
                simulators=simulators,
                providers=providers,
                payments=payments,
                serving=serving,
            )
