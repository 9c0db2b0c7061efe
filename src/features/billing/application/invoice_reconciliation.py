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

    book: InvoiceStore
    looks: ReconciliationQueries
    records: StripeReader | None

    async def carry_out(self, *, is_dry_run: bool) -> JobSummary:
        tally = JobSummary()
        if self.records is None:
            return tally
        seen_at = await self.book.now()
        async for invoice in self.records.invoices(since=seen_at - LOOK_BACK):
            tally.counts["invoices"] += 1
            account_id = await self.book.account_of(
                customer_id=invoice.customer_id, subscription_id=invoice.subscription_id
            )
            if account_id is None or await self.looks.standing_of(account_id) == "gone":
                tally.note("account_unknown", invoice.id)
            elif not is_dry_run:
                await self._reconcile(account_id, invoice, seen_at, tally)
        return tally

    async def _reconcile(
        self, account_id: AccountId, invoice: InvoiceSnapshot, seen_at: datetime, tally: JobSummary
    ) -> None:
        if await self.book.save_invoice(account_id, invoice, seen_at):
            tally.counts["invoices_saved"] += 1
            tally.note("was_different", invoice.id)
        if invoice.status != "paid" or invoice.subscription_id is None:
            return
        try:
            credits_granted = await self._grant(account_id, invoice, invoice.subscription_id)
        except Unavailable:
            raise
        except DomainError as error:
            tally.note(error.code, invoice.id)
            return
        if credits_granted:
            tally.note("paid_without_credits", invoice.id)
            tally.counts.update(periods_granted=1, credits=credits_granted)

    async def _grant(self, account_id: AccountId, invoice: InvoiceSnapshot, subscription_id: str) -> int:
        row_id = await self.looks.row_of(subscription_id)
        credits_granted = 0
        if row_id is None or invoice.billing_reason not in FOR_A_PERIOD:
            assert self.records is not None, "there are invoices"
            seen_at = await self.book.now()
            snapshot = await self.records.subscription(subscription_id)
            if snapshot is None:
                return 0
            applied = await self.book.apply_subscription(account_id, snapshot, seen_at)
            row_id, credits_granted = applied.subscription_id, applied.credits_granted
        if row_id is None or invoice.billing_reason not in FOR_A_PERIOD:
            return credits_granted
        return credits_granted + await self._grant_period(account_id, invoice, row_id)

    async def _grant_period(self, account_id: AccountId, invoice: InvoiceSnapshot, row_id: UUID) -> int:
        plan = await self.book.plan_of(invoice.price_id) if invoice.price_id else None
        start, end = invoice.period_start, invoice.period_end
        if plan is None or start is None or end is None:
            return 0
        async with self.book.transaction():
            granted = await self.book.grant_period(
                account_id, row_id, plan, period_start=start, period_end=end
            )
            if granted and invoice.payment_id:
                await self.book.note_payment(
                    account_id,
                    invoice.payment_id,
                    grant_reference=renewal_reference(row_id, start),
                    credits=granted,
                    paid_cents=invoice.paid_cents,
                    currency=invoice.currency,
                )
        return granted
