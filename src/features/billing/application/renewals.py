from dataclasses import dataclass

from features.billing.application.maintenance_ports import RenewalStore
from features.billing.application.ports import StripeReader
from features.billing.domain.job_summary import JobSummary
from features.billing.domain.results import Renewable
from shared.errors import DomainError, Unavailable

OWN_PER_TRANSACTION = 500
DUE_PER_PAGE = 500


@dataclass(frozen=True, slots=True)
class Renewals:
    """Credits of new periods. Subscriptions on our own clock are renewed here; those on Stripe's clock are
    fetched from Stripe in case its event was lost. Idempotent: each period is granted once.
    """

    repository: RenewalStore
    stripe_reader: StripeReader | None  # None: billing is not configured

    async def run(self, *, is_dry_run: bool) -> JobSummary:
        if is_dry_run:
            return await self._due()
        summary = JobSummary()
        while True:
            renewed, credits_granted = await self.repository.renew_internal(OWN_PER_TRANSACTION)
            if not renewed:
                break
            summary.counts.update(processed=renewed, succeeded=renewed, credits=credits_granted)
        if self.stripe_reader is not None:
            await self._renew_paid(self.stripe_reader, summary)
        return summary

    async def _due(self) -> JobSummary:
        summary, due_max = JobSummary(), DUE_PER_PAGE
        while len(due := await self.repository.renewable(due_max)) == due_max:
            due_max *= 4
        summary.counts.update(processed=len(due), credits=sum(one.monthly_credits for one in due))
        return summary

    async def _renew_paid(self, stripe_reader: StripeReader, summary: JobSummary) -> None:
        """Fetch each due subscription once: it stays due if Stripe has no new period either."""
        fetched: set[str] = set()
        due_max = DUE_PER_PAGE
        while True:
            due = await self.repository.renewable(due_max)
            for one in due:
                if one.stripe_subscription_id and one.stripe_subscription_id not in fetched:
                    fetched.add(one.stripe_subscription_id)
                    await self._renew_by_stripe(stripe_reader, one, one.stripe_subscription_id, summary)
            if len(due) < due_max:
                return
            due_max += DUE_PER_PAGE

    async def _renew_by_stripe(
        self, stripe_reader: StripeReader, due: Renewable, stripe_id: str, summary: JobSummary
    ) -> None:
        summary.counts["processed"] += 1
        seen_at = await self.repository.now()
        try:
            snapshot = await stripe_reader.subscription(stripe_id)
            if snapshot is None:
                summary.add_discrepancy("unknown_at_stripe", stripe_id)
                summary.counts["failed"] += 1
                return
            applied = await self.repository.apply_subscription(due.account_id, snapshot, seen_at)
        except Unavailable:
            raise  # the remaining subscriptions would fail in the same way
        except DomainError as error:
            summary.add_discrepancy(error.code, stripe_id)
            summary.counts["failed"] += 1
            return
        summary.counts.update(succeeded=1, credits=applied.credits_granted)
