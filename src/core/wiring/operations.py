"""What operators see and do."""

from dataclasses import dataclass

from core.cron.schedule import JOBS
from core.cron.timetable import CronTimetable
from features.operations.application.acts import Acts
from features.operations.application.cron import Cron
from infrastructure.database.acts import PostgresActs
from infrastructure.database.cron import PostgresCron
from infrastructure.database.sessions import Database
from shared.middleware.audit import Audit


@dataclass(frozen=True, slots=True)
class Operations:
    cron: Cron
    acts: Acts
    audit: Audit


def operations_on(database: Database) -> Operations:
    cron, acts = PostgresCron(database.admin("cron")), PostgresActs(database.admin("admin acts"))
    return Operations(
        cron=Cron(JOBS, CronTimetable(), cron, cron),
        acts=Acts(acts),
        audit=Audit(acts),
    )
