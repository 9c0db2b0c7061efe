"""What each job of ``core.cron.schedule`` does, and who keeps the time."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from core.cron.execution import Chore, CronExecution
from core.cron.schedule import JOBS
from core.engine.routines import Routine
from core.wiring.foundation import Foundation
from core.wiring.providers import utc_now
from features.billing.application.inbox import Inbox
from features.billing.application.missing_events import MissingEvents
from features.billing.application.ports import StripeRecords
from features.billing.application.reconciliation import InvoiceReconciliation
from features.billing.application.renewals import Renewals
from features.billing.application.synchronisation import SubscriptionSync
from features.billing.application.upkeep_ports import SubscriptionEnds
from features.billing.domain.upkeep import Tally
from features.credits.application.upkeep import Upkeep
from features.operations.application.cleanup import (
    CACHES,
    SOFT_DELETED,
    TRACES,
    LapsedLots,
    LostRunRelease,
    ProgressExpiry,
    Removal,
)
from features.operations.domain.jobs import JobFinding, Report
from infrastructure.database.billing_book import PostgresBillingBook
from infrastructure.database.billing_looks import PostgresBillingLooks
from infrastructure.database.credits import PostgresLedger
from infrastructure.database.cron import PostgresCron
from infrastructure.database.inbox_reads import PostgresEvents
from infrastructure.database.remains import PostgresRemains
from infrastructure.database.runs import PostgresRuns
from infrastructure.database.sessions import Database
from infrastructure.payments.stripe_terms import StripeTerms


@dataclass(frozen=True, slots=True)
class Tallied:
    """A comparison's result in the words of jobs."""

    compare: Callable[..., Awaitable[Tally]]

    async def carry_out(self, *, is_dry_run: bool) -> Report:
        tally = await self.compare(is_dry_run=is_dry_run)
        return Report(
            counts=dict(tally.counts),
            findings=tuple(JobFinding(kind=one.kind, subject=one.subject) for one in tally.discrepancies),
        )


def chores_of(
    database: Database, records: StripeRecords | None = None, ends: SubscriptionEnds | None = None
) -> dict[str, Chore]:
    """``records``, ``ends``: Stripe, where there is one."""
    missing_events = MissingEvents(Inbox(PostgresEvents(database), records), utc_now)
    session = database.admin("cron")
    book, looks = PostgresBillingBook(session), PostgresBillingLooks(session)
    remains, runs = PostgresRemains(session), PostgresRuns(session)
    renewals = Tallied(Renewals(book, records).carry_out)
    return {
        "monthly-renewal": renewals,
        "renewal-sweep": renewals,
        "subscription-sync": Tallied(SubscriptionSync(book, looks, records, ends).carry_out),
        "invoice-reconciliation": Tallied(InvoiceReconciliation(book, looks, records).carry_out),
        "missing-events": Tallied(missing_events.carry_out),
        "daily-cleanup": Removal(remains, SOFT_DELETED),
        "failed-analysis-cleanup": LostRunRelease(runs, PostgresCron(session), remains),
        "lot-expiry": LapsedLots(Upkeep(PostgresLedger(session)), remains),
        "cache-expiry": Removal(remains, CACHES),
        "progress-expiry": ProgressExpiry(runs, Removal(remains, TRACES)),
    }


def cron_routine(foundation: Foundation) -> Routine:
    """The name under which ``cron.claim`` enqueues."""
    database, payments = foundation.database, foundation.payments
    ends = None if payments.records is None else StripeTerms(payments.desk)
    chores = chores_of(database, payments.records, ends)
    execution = CronExecution(JOBS, chores, PostgresCron(database.admin("cron")))
    return Routine("cron_job", execution.carry_out)
