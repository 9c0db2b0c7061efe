"""The clock of a process that has one."""

from core.attendants import Attendant
from core.cron.schedule import JOBS
from core.cron.scheduler import Scheduler
from core.wiring.foundation import Foundation
from core.wiring.providers import utc_now
from infrastructure.database.cron import PostgresCron


def scheduler_on(foundation: Foundation) -> Attendant:
    return Scheduler(JOBS.values(), PostgresCron(foundation.database.admin("cron")), utc_now).attend
