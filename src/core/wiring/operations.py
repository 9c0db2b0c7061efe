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
    audit_log: AuditEntries
    audit: AuditRecorder


def operations_on(database: Database) -> OperationsUseCases:
    cron, audit_log = PostgresCron(database.admin("cron")), PostgresAuditLog(database.admin("audit log"))
    return OperationsUseCases(
        cron=Cron(JOBS, CronSchedule(), cron, cron),
        audit_log=AuditEntries(audit_log),
        audit=AuditRecorder(audit_log),
    )
