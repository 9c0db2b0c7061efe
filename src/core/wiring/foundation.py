"""What the API and the engine stand on. A process that is both opens it once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from core.engine.state import EngineState
from core.health import VERSION
from core.serving import Serving
from core.wiring.costs import Books, open_books
from core.wiring.outside import simulators_of
from core.wiring.payments import Payments, open_payments
from core.wiring.place import (
    Addresses,
    Surroundings,
    apply_migrations,
    database_addresses,
    open_database,
)
from core.wiring.providers import Providers, open_providers
from infrastructure.database.sessions import Database
from infrastructure.monitoring.sentry import sentry
from infrastructure.simulators.supervisor import Simulators


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    place: Surroundings
    addresses: Addresses
    database: Database
    books: Books
    simulators: Simulators
    providers: Providers
    payments: Payments
    serving: Serving
    engine: EngineState = field(default_factory=EngineState)
    arrivals: asyncio.Event = field(default_factory=asyncio.Event)  # set when Stripe has told us something


@asynccontextmanager
async def open_foundation(place: Surroundings) -> AsyncGenerator[Foundation]:
    settings, serving = place.settings, Serving()
    async with database_addresses(settings) as addresses:
        if settings.is_local and addresses.owner:
            await apply_migrations(settings, addresses)
        async with (
            sentry(settings.sentry_dsn, environment=settings.environment, release=VERSION),
            open_database(place, addresses) as database,
            open_books(database) as books,
            simulators_of(place) as simulators,
            open_providers(place, database, books, simulators) as providers,
            open_payments(place, database, simulators, serving) as payments,
        ):
            yield Foundation(
                place=place,
                addresses=addresses,
                database=database,
                books=books,
                simulators=simulators,
                providers=providers,
                payments=payments,
                serving=serving,
            )
