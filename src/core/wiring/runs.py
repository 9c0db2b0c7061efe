"""Runs as their accounts see them, and the connection that tells of changes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from core.progress.hub import CHANNELS, Hub
from core.wiring.place import Addresses, Surroundings, current_addresses
from core.wiring.providers import utc_now
from features.runs.application.estimates import Estimates
from features.runs.application.retries import Cancellations, Retries
from features.runs.application.streams import RunStreams
from features.runs.application.views import RunViews
from features.runs.application.watching import LiveRuns
from features.runs.domain.view import ResultLink
from infrastructure.database.listener import Listener
from infrastructure.database.run_reads import PostgresMeasurements, PostgresRetries, PostgresRunReads
from infrastructure.database.runs import PostgresRuns
from infrastructure.database.sessions import Database

ANALYSIS = ResultLink(template="/v1/analyses/{run_id}")
RESULT_LINKS = {
    "light_analysis": ANALYSIS,
    "deep_analysis": ANALYSIS,
    "xray_analysis": ANALYSIS,
    "bulk_analysis": ResultLink(template="/v1/analyses/bulk/{run_id}", is_early=True),
}


@dataclass(frozen=True, slots=True)
class Runs:
    live: LiveRuns
    views: RunViews
    streams: RunStreams
    estimates: Estimates
    cancellations: Cancellations
    retries: Retries


@asynccontextmanager
async def open_runs(place: Surroundings, addresses: Addresses, database: Database) -> AsyncGenerator[Runs]:
    live = LiveRuns(utc_now)
    listening = asyncio.create_task(_listener(place, addresses, live).listen()) if _hears(place) else None
    try:
        yield _runs(live, database)
    finally:
        live.close()
        if listening is not None:
            listening.cancel()
            with suppress(asyncio.CancelledError):
                await listening


def _hears(place: Surroundings) -> bool:
    """A transaction pooler gives nobody a connection of their own, and messages go to whoever has it."""
    return place.settings.database_pooler != "transaction"


def _listener(place: Surroundings, addresses: Addresses, live: LiveRuns) -> Listener:
    async def admin_url() -> str:
        return (await current_addresses(place, addresses)).admin

    hub = Hub(live)
    return Listener(admin_url, CHANNELS, hear=hub.hear, hear_state=hub.hear_state)


def _runs(live: LiveRuns, database: Database) -> Runs:
    measurements = PostgresMeasurements(database.admin("run estimates"))
    estimates = Estimates(measurements)
    views = RunViews(PostgresRunReads(database), measurements, estimates, live, RESULT_LINKS, utc_now)
    session = database.admin("runs")
    return Runs(
        live=live,
        views=views,
        streams=RunStreams(views),
        estimates=estimates,
        cancellations=Cancellations(views, PostgresRuns(session)),
        retries=Retries(views, PostgresRetries(session)),
    )
