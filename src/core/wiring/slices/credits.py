"""Credit accounts: balances, statements, corrections by operators, expiry of lots."""

from core.cron.job_runner import MINUTE_S
from core.wiring.slice import ApiParts, Resources, Slice, WorkerParts
from features.credits.application.adjustments import Adjustments
from features.credits.application.balances import Balances
from features.credits.application.grants import Grants
from features.credits.application.maintenance import CreditMaintenance
from features.credits.application.statements import Statements
from features.credits.controllers.administration import CreditsAdministrationController
from features.credits.controllers.credits import CreditsController
from features.operations.application.retention import LotExpiryJob
from features.operations.domain.jobs import Job
from infrastructure.database.credits.ledger import PostgresCreditReader, PostgresLedger
from infrastructure.database.operations.retention import PostgresRetention


def _api(resources: Resources) -> ApiParts:
    reader = PostgresCreditReader(resources.database)
    ledger = PostgresLedger(resources.database.admin("credit ledger"))
    return ApiParts(
        dependencies={
            "balances": Balances(reader),
            "statements": Statements(reader),
            "grants": Grants(ledger),
            "adjustments": Adjustments(ledger),
            "credit_maintenance": CreditMaintenance(ledger),
        }
    )


def _worker(resources: Resources) -> WorkerParts:
    session = resources.database.admin("cron")
    expiry = LotExpiryJob(CreditMaintenance(PostgresLedger(session)), PostgresRetention(session))
    return WorkerParts(job_handlers={"lot-expiry": expiry.run})


CREDITS = Slice(
    name="credits",
    controllers=(CreditsController, CreditsAdministrationController),
    jobs=(
        Job(
            name="lot-expiry",
            schedule="*/15 * * * *",
            missed="latest",
            time_limit_s=30 * MINUTE_S,
            title="Expire lots of credits",
        ),
    ),
    api=_api,
    worker=_worker,
)
