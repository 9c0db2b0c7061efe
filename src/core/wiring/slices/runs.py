"""Runs: status, event streams, cancellation and retry, and the listener that reports their changes."""

from datetime import timedelta

from core.engine.workflow import Queue
from core.processes.background import until_stopped
from core.progress.run_notifications import CHANNELS, RunNotifications
from core.wiring.bootstrap import current_addresses
from core.wiring.slice import ApiParts, Resources, Slice
from features.operations.domain.retention import RetentionRule
from features.runs.application.estimates import Estimates
from features.runs.application.event_stream import RunEventStreams
from features.runs.application.live_runs import LiveRuns
from features.runs.application.retries import Cancellations, Retries
from features.runs.application.run_queries import RunQueries
from features.runs.controllers.runs import RefundPolicyController, RunsController
from infrastructure.database.listener import Listener
from infrastructure.database.runs.run_queries import PostgresMeasurements, PostgresRetries, PostgresRunQueries
from infrastructure.database.runs.runs import PostgresRuns
from shared.clock import utc_now


def _api(resources: Resources) -> ApiParts:
    live = LiveRuns(utc_now)
    resources.closing.callback(live.close)
    session = resources.database.admin("runs")
    queries = _queries(resources, live)
    return ApiParts(
        dependencies={
            "live_runs": live,
            "run_queries": queries,
            "run_streams": RunEventStreams(queries),
            "cancellations": Cancellations(queries, PostgresRuns(session)),
            "retries": Retries(queries, PostgresRetries(session)),
        },
        # A transaction pooler assigns a connection per transaction, so LISTEN would receive nothing.
        services={"run_notifications": until_stopped(_listener(resources, live).listen)}
        if resources.runtime.settings.database_pooler != "transaction"
        else {},
    )


def _queries(resources: Resources, live: LiveRuns) -> RunQueries:
    kinds = resources.run_kinds
    measurements = PostgresMeasurements(resources.database.admin("run estimates"))
    links = {name: kind.result_link for name, kind in kinds.items() if kind.result_link is not None}
    estimates = Estimates(measurements, kinds)
    return RunQueries(PostgresRunQueries(resources.database), measurements, estimates, live, links, utc_now)


def _listener(resources: Resources, live: LiveRuns) -> Listener:
    async def admin_url() -> str:
        return (await current_addresses(resources.runtime, resources.addresses)).admin

    notifications = RunNotifications(live)
    return Listener(
        admin_url, CHANNELS, hear=notifications.on_notification, hear_state=notifications.on_connection_change
    )


RUNS = Slice(
    name="runs",
    controllers=(RunsController, RefundPolicyController),
    queues=(Queue(name="runs", poll_interval_s=0.1, worker_concurrency=20),),
    retention={"daily-cleanup": (RetentionRule("public.runs", timedelta(days=30)),)},
    api=_api,
)
