"""Use cases of runs, and the database listener that reports their changes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from core.progress.run_notifications import CHANNELS, RunNotifications
from core.wiring.bootstrap import DatabaseUrls, Runtime, current_addresses
from core.wiring.providers import utc_now
from features.runs.application.estimates import Estimates
from features.runs.application.event_stream import RunEventStreams
from features.runs.application.live_runs import LiveRuns
from features.runs.application.retries import Cancellations, Retries
from features.runs.application.run_queries import RunQueries
from features.runs.domain.view import ResultLink
from infrastructure.database.clients import Database
from infrastructure.database.listener import Listener
from infrastructure.database.runs.run_queries import PostgresMeasurements, PostgresRetries, PostgresRunQueries
from infrastructure.database.runs.runs import PostgresRuns

ANALYSIS = ResultLink(template="/v1/analyses/{run_id}")
RESULT_LINKS = {
    "light_analysis": ANALYSIS,
    "deep_analysis": ANALYSIS,
    "xray_analysis": ANALYSIS,
    "bulk_analysis": ResultLink(template="/v1/analyses/bulk/{run_id}", is_early=True),
}


@dataclass(frozen=True, slots=True)
class RunUseCases:
    live: LiveRuns
    views: RunQueries
    streams: RunEventStreams
    estimates: Estimates
    cancellations: Cancellations
    retries: Retries


@asynccontextmanager
async def open_runs(
    place: Runtime, addresses: DatabaseUrls, database: Database
) -> AsyncGenerator[RunUseCases]:
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


def _hears(place: Runtime) -> bool:
    """A transaction pooler assigns a connection per transaction, so LISTEN would not receive its
    notifications.
    """
    return place.settings.database_pooler != "transaction"


def _listener(place: Runtime, addresses: DatabaseUrls, live: LiveRuns) -> Listener:
    async def admin_url() -> str:
        return (await current_addresses(place, addresses)).admin

    hub = RunNotifications(live)
    return Listener(admin_url, CHANNELS, hear=hub.on_notification, hear_state=hub.on_connection_change)


def _runs(live: LiveRuns, database: Database) -> RunUseCases:
    measurements = PostgresMeasurements(database.admin("run estimates"))
    estimates = Estimates(measurements)
    views = RunQueries(PostgresRunQueries(database), measurements, estimates, live, RESULT_LINKS, utc_now)
    session = database.admin("runs")
    return RunUseCases(
        live=live,
        views=views,
        streams=RunEventStreams(views),
        estimates=estimates,
        cancellations=Cancellations(views, PostgresRuns(session)),
        retries=Retries(views, PostgresRetries(session)),
    )
