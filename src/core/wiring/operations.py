"""Use cases for operators: cron jobs and the audit log."""

from dataclasses import dataclass

from core.cron.cron_expressions import CronSchedule
from core.cron.jobs import JOBS
from features.operations.application.audit_log import AuditEntries
from features.operations.application.cron import Cron
from infrastructure.database.clients import Database
from infrastructure.database.operations.audit_log import PostgresAuditLog
from infrastructure.database.operations.cron import PostgresCron
from shared.middleware.audit_log import AuditRecorder


@dataclass(frozen=True, slots=True)
class OperationsUseCases:
    cron: Cron
    acts: AuditEntries
    audit: AuditRecorder


def operations_on(database: Database) -> OperationsUseCases:
    cron, acts = PostgresCron(database.admin("cron")), PostgresAuditLog(database.admin("admin acts"))
    return OperationsUseCases(
        cron=Cron(JOBS, CronSchedule(), cron, cron),
        acts=AuditEntries(acts),
        audit=AuditRecorder(acts),
    )
