"""Operations: cron jobs, the audit log, and the retention of all slices' tables."""

from datetime import timedelta

from core.cron.cron_expressions import CronSchedule
from core.cron.job_runner import HOUR_S, MINUTE_S
from core.cron.scheduler import Scheduler
from core.engine.workflow import Queue
from core.processes.background import BackgroundService
from core.wiring.slice import ApiParts, Resources, Slice, WorkerParts
from features.operations.application.audit_log import AuditEntries
from features.operations.application.cron import Cron
from features.operations.application.retention import ProgressExpiry, Purge, StalledRunJob
from features.operations.controllers.audit_log import AuditLogController
from features.operations.controllers.cron import CronController
from features.operations.domain.jobs import Job
from features.operations.domain.retention import NO_TIME, RetentionRule
from infrastructure.database.operations.audit_log import PostgresAuditLog
from infrastructure.database.operations.cron import PostgresCron
from infrastructure.database.operations.retention import PostgresRetention
from infrastructure.database.runs.runs import PostgresRuns
from shared.clock import utc_now
from shared.middleware.audit_log import AuditRecorder

JOBS = (
    Job(
        name="daily-cleanup",
        schedule="0 2 * * *",
        missed="latest",
        time_limit_s=6 * HOUR_S,
        title="Delete rows that were soft-deleted 30 days ago",
    ),
    Job(
        name="failed-analysis-cleanup",
        schedule="0 * * * *",
        missed="skip",
        time_limit_s=30 * MINUTE_S,
        title="Fail runs that no worker will finish",
    ),
    Job(
        name="cache-expiry",
        schedule="30 * * * *",
        missed="skip",
        time_limit_s=30 * MINUTE_S,
        title="Delete expired cache entries",
    ),
    Job(
        name="progress-expiry",
        schedule="*/30 * * * *",
        missed="skip",
        time_limit_s=30 * MINUTE_S,
        title="Delete expired request records and the checkpoints of ended runs",
    ),
)


def _api(resources: Resources) -> ApiParts:
    cron = PostgresCron(resources.database.admin("cron"))
    audit_log = PostgresAuditLog(resources.database.admin("audit log"))
    return ApiParts(
        dependencies={
            "cron": Cron(resources.jobs, CronSchedule(), cron, cron),
            "audit_log": AuditEntries(audit_log),
            "audit_recorder": AuditRecorder(audit_log),
        }
    )


def _worker(resources: Resources) -> WorkerParts:
    session = resources.database.admin("cron")
    retention, runs = PostgresRetention(session), PostgresRuns(session)
    traces = Purge(retention, resources.retention("progress-expiry"))
    return WorkerParts(
        job_handlers={
            "daily-cleanup": Purge(retention, resources.retention("daily-cleanup")).run,
            "failed-analysis-cleanup": StalledRunJob(runs, PostgresCron(session), retention).run,
            "cache-expiry": Purge(retention, resources.retention("cache-expiry")).run,
            "progress-expiry": ProgressExpiry(runs, traces).run,
        }
    )


def scheduler(resources: Resources) -> BackgroundService:
    """The scheduler of all slices' jobs, for a scheduler process or a server with an embedded worker."""
    claims = PostgresCron(resources.database.admin("cron"))
    return Scheduler(resources.jobs.values(), claims, utc_now).run


OPERATIONS = Slice(
    name="operations",
    controllers=(CronController, AuditLogController),
    queues=(Queue(name="cron", poll_interval_s=1.0, worker_concurrency=1),),
    jobs=JOBS,
    retention={
        "daily-cleanup": (RetentionRule("public.cron_runs", timedelta(days=400)),),
        "progress-expiry": (
            RetentionRule("traffic.idempotency_keys", timedelta(hours=25)),
            RetentionRule("traffic.rate_windows", NO_TIME),
            RetentionRule("traffic.leases", NO_TIME),
            RetentionRule("traffic.requests", timedelta(days=90)),
            RetentionRule("traffic.request_counts", timedelta(days=90)),
        ),
    },
    api=_api,
    worker=_worker,
)
