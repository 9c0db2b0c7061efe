from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from features.billing.application.maintenance_ports import InvoiceStore, ReconciliationQueries
from features.billing.application.ports import StripeReader
from features.billing.domain.job_summary import JobSummary
from features.billing.domain.results import renewal_reference
from features.billing.domain.stripe_snapshots import InvoiceSnapshot
from shared.errors import DomainError, Unavailable
from shared.ids import AccountId

# Longer than a month, so that each invoice is fetched again after its due date.
LOOK_BACK = timedelta(days=35)
# Invoices for a whole period. An upgrade's invoice covers a part of one; its credits follow from the
# subscription's state.
FOR_A_PERIOD = frozenset({"subscription_create", "subscription_cycle"})


@dataclass(frozen=True, slots=True)
class InvoiceReconciliation:
    """Copies recent invoices from Stripe and grants the credits of paid periods that were missed."""

    repository: InvoiceStore
    queries: ReconciliationQueries
    stripe_reader: StripeReader | None

    async def run(self, *, is_dry_run: bool) -> JobSummary:
        summary = JobSummary()
        if self.stripe_reader is None:
            return summary
        seen_at = await self.repository.now()
        async for invoice in self.stripe_reader.invoices(since=seen_at - LOOK_BACK):
            summary.counts["invoices"] += 1
            account_id = await self.repository.account_of(
                customer_id=invoice.customer_id, subscription_id=invoice.subscription_id
            )
            if account_id is None or await self.queries.status_of(account_id) == "gone":
                summary.add_discrepancy("account_unknown", invoice.id)
            elif not is_dry_run:
                await self._reconcile(account_id, invoice, seen_at, summary)
        return summary

    async def _reconcile(
        self, account_id: AccountId, invoice: InvoiceSnapshot, seen_at: datetime, summary: JobSummary
    ) -> None:
        if await self.repository.save_invoice(account_id, invoice, seen_at):
            summary.counts["invoices_saved"] += 1
            summary.add_discrepancy("was_different", invoice.id)
        if invoice.status != "paid" or invoice.subscription_id is None:
            return
        try:
            credits_granted = await self._grant(account_id, invoice, invoice.subscription_id)
        except Unavailable:
            raise
        except DomainError as error:
            summary.add_discrepancy(error.code, invoice.id)
            return
        if credits_granted:
            summary.add_discrepancy("paid_without_credits", invoice.id)
            summary.counts.update(periods_granted=1, credits=credits_granted)

    async def _grant(self, account_id: AccountId, invoice: InvoiceSnapshot, subscription_id: str) -> int:
        row_id = await self.queries.row_of(subscription_id)
        credits_granted = 0
        if row_id is None or invoice.billing_reason not in FOR_A_PERIOD:
            assert self.stripe_reader is not None, "there are invoices"
            seen_at = await self.repository.now()
            snapshot = await self.stripe_reader.subscription(subscription_id)
            if snapshot is None:
                return 0
            applied = await self.repository.apply_subscription(account_id, snapshot, seen_at)
            row_id, credits_granted = applied.subscription_id, applied.credits_granted
        if row_id is None or invoice.billing_reason not in FOR_A_PERIOD:
            return credits_granted
        return credits_granted + await self._grant_period(account_id, invoice, row_id)

    async def _grant_period(self, account_id: AccountId, invoice: InvoiceSnapshot, row_id: UUID) -> int:
        plan = await self.repository.plan_of(invoice.price_id) if invoice.price_id else None
        start, end = invoice.period_start, invoice.period_end
        if plan is None or start is None or end is None:
            return 0
        async with self.repository.transaction():
            granted = await self.repository.grant_period(
                account_id, row_id, plan, period_start=start, period_end=end
            )
            if granted and invoice.payment_id:
                await self.repository.record_payment(
                    account_id,
                    invoice.payment_id,
                    grant_reference=renewal_reference(row_id, start),
                    credits=granted,
                    paid_cents=invoice.paid_cents,
                    currency=invoice.currency,
                )
        return granted
