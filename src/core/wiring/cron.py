"""Job handlers of ``core.cron.jobs`` and the system workflow that runs them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from core.cron.job_runner import JobHandler, JobRunner
from core.cron.jobs import JOBS
from core.engine.workflow import SystemWorkflow
from core.wiring.providers import utc_now
from core.wiring.resources import Resources
from features.billing.application.invoice_reconciliation import InvoiceReconciliation
from features.billing.application.maintenance_ports import SubscriptionEnds
from features.billing.application.ports import StripeReader
from features.billing.application.renewals import Renewals
from features.billing.application.stripe_events.admin import StripeEventAdmin
from features.billing.application.stripe_events.backfill import StripeEventBackfill
from features.billing.application.subscription_sync import SubscriptionSync
from features.billing.domain.job_summary import JobSummary
from features.credits.application.maintenance import CreditMaintenance
from features.operations.application.retention import (
    LotExpiryJob,
    ProgressExpiry,
    Purge,
    StalledRunJob,
)
from features.operations.domain.jobs import JobFinding, Report
from features.operations.domain.retention import CACHES, RECORDS, REQUEST_RECORDS
from infrastructure.database.billing.reconciliation import PostgresReconciliationQueries
from infrastructure.database.billing.stripe_events import PostgresStripeEvents
from infrastructure.database.billing.subscriptions import PostgresSubscriptionRepository
from infrastructure.database.clients import Database
from infrastructure.database.credits.ledger import PostgresLedger
from infrastructure.database.operations.cron import PostgresCron
from infrastructure.database.operations.retention import PostgresRetention
from infrastructure.database.runs.runs import PostgresRuns
from infrastructure.payments.stripe_subscriptions import StripeSubscriptions


@dataclass(frozen=True, slots=True)
class JobWithSummary:
    """Adapter from a ``JobSummary`` to the ``Report`` of a job."""

    compare: Callable[..., Awaitable[JobSummary]]

    async def carry_out(self, *, is_dry_run: bool) -> Report:
        summary = await self.compare(is_dry_run=is_dry_run)
        return Report(
            counts=dict(summary.counts),
            findings=tuple(JobFinding(kind=one.kind, subject=one.subject) for one in summary.discrepancies),
        )


def job_handlers(
    database: Database, stripe_reader: StripeReader | None = None, ends: SubscriptionEnds | None = None
) -> dict[str, JobHandler]:
    """``records`` and ``ends`` are None if Stripe is not configured."""
    missing_events = StripeEventBackfill(
        StripeEventAdmin(PostgresStripeEvents(database), stripe_reader), utc_now
    )
    session = database.admin("cron")
    repository, queries = PostgresSubscriptionRepository(session), PostgresReconciliationQueries(session)
    retention, runs = PostgresRetention(session), PostgresRuns(session)
    renewals = JobWithSummary(Renewals(repository, stripe_reader).run)
    return {
        "monthly-renewal": renewals,
        "renewal-sweep": renewals,
        "subscription-sync": JobWithSummary(SubscriptionSync(repository, queries, stripe_reader, ends).run),
        "invoice-reconciliation": JobWithSummary(
            InvoiceReconciliation(repository, queries, stripe_reader).run
        ),
        "missing-events": JobWithSummary(missing_events.run),
        "daily-cleanup": Purge(retention, RECORDS),
        "failed-analysis-cleanup": StalledRunJob(runs, PostgresCron(session), retention),
        "lot-expiry": LotExpiryJob(CreditMaintenance(PostgresLedger(session)), retention),
        "cache-expiry": Purge(retention, CACHES),
        "progress-expiry": ProgressExpiry(runs, Purge(retention, REQUEST_RECORDS)),
    }


def cron_routine(foundation: Resources) -> SystemWorkflow:
    """The workflow's name must equal the name under which ``scheduling.claim`` enqueues."""
    database, payments = foundation.database, foundation.payments
    ends = None if payments.stripe_reader is None else StripeSubscriptions(payments.api)
    chores = job_handlers(database, payments.stripe_reader, ends)
    execution = JobRunner(JOBS, chores, PostgresCron(database.admin("cron")))
    return SystemWorkflow("cron_job", execution.carry_out)
