"""Jobs of all slices, and their handlers on a test's database."""

from dataclasses import dataclass

from core.wiring.slice import Resources
from core.wiring.slices import SLICES
from core.wiring.slices.billing import job_handlers as billing_job_handlers
from core.wiring.slices.credits import CREDITS
from core.wiring.slices.operations import OPERATIONS
from infrastructure.database.clients import Database

JOBS = {job.name: job for slice_ in SLICES for job in slice_.jobs}


@dataclass
class JobResources:
    database: Database
    slices = SLICES
    retention = Resources.retention


def job_handlers(database, records=None, ends=None):
    """``records`` and ``ends`` are None if Stripe is not configured."""
    resources = JobResources(database)
    return {
        **billing_job_handlers(database, records, ends),
        **CREDITS.worker(resources).job_handlers,
        **OPERATIONS.worker(resources).job_handlers,
    }
