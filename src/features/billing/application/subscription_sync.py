from dataclasses import dataclass
from datetime import datetime

from features.billing.application.duplicate_subscriptions import DuplicateSubscriptions
from features.billing.application.maintenance_ports import (
    ReconciliationQueries,
    SubscriptionEnds,
    SubscriptionSyncStore,
)
from features.billing.application.ports import StripeReader
from features.billing.domain.job_summary import JobSummary
from features.billing.domain.results import SubscriptionResult
from features.billing.domain.stripe_snapshots import SubscriptionSnapshot
from shared.errors import DomainError, Unavailable
from shared.ids import AccountId

UNSEEN_PER_PAGE = 200


class _Incomplete(Exception):
    """Rolls back the transaction of a dry run and carries its result."""

    def __init__(self, applied: SubscriptionResult) -> None:
        super().__init__(applied)
        self.applied = applied


@dataclass(frozen=True, slots=True)
class SubscriptionSync:
    """Copies every subscription from Stripe, then fetches stored ones that Stripe did not list. Cancels the
    subscriptions of deleted accounts and the second subscription of an account.
    """

    repository: SubscriptionSyncStore
    queries: ReconciliationQueries
    stripe_reader: StripeReader | None
    ends: SubscriptionEnds | None

    async def run(self, *, is_dry_run: bool) -> JobSummary:
        summary = JobSummary()
        if self.stripe_reader is None:
            return summary
        # Read before the first page, so that every snapshot is at least as new as seen_at.
        seen_at = await self.repository.now()
        async for snapshot in self.stripe_reader.subscriptions():
            summary.counts["subscriptions"] += 1
            await self._compare(snapshot, seen_at, summary, is_dry_run=is_dry_run)
        if not is_dry_run:
            await self._sync_unlisted(self.stripe_reader, seen_at, summary)
        return summary

    async def _compare(
        self, snapshot: SubscriptionSnapshot, seen_at: datetime, summary: JobSummary, *, is_dry_run: bool
    ) -> None:
        account_id = await self.repository.account_of(
            customer_id=snapshot.customer_id, subscription_id=snapshot.id
        )
        account_id = account_id or snapshot.account_id
        is_over = snapshot.status in ("canceled", "incomplete_expired")
        billing = "gone" if account_id is None else await self.queries.status_of(account_id)
        if account_id is None or billing == "gone":
            # The subscription may belong to another system, so the job must not cancel it.
            if not is_over:
                summary.add_discrepancy("account_unknown", snapshot.id)
            return
        try:
            if billing == "deleted" and not is_over:
                summary.add_discrepancy("account_deleted", snapshot.id)
                snapshot, seen_at = await self._ended(snapshot, seen_at, is_dry_run=is_dry_run)
            applied = await self._apply(account_id, snapshot, seen_at, is_dry_run=is_dry_run)
            _count(applied, snapshot, summary)
            if applied.outcome == "second_subscription" or snapshot.surplus == "ending":
                summary.add_discrepancy("second_subscription", snapshot.id)
                await self._end_surplus(account_id, snapshot, summary, is_dry_run=is_dry_run)
        except Unavailable:
            raise
        except DomainError as error:  # concerns this subscription only; the job continues
            summary.add_discrepancy(error.code, snapshot.id)

    async def _end_surplus(
        self, account_id: AccountId, snapshot: SubscriptionSnapshot, summary: JobSummary, *, is_dry_run: bool
    ) -> None:
        if is_dry_run or self.ends is None or self.stripe_reader is None:
            return
        surplus = DuplicateSubscriptions(self.queries, self.stripe_reader, self.ends)
        cents = await surplus.end(account_id, snapshot)
        if cents is not None:
            summary.counts.update(ended=1, cents_returned=cents)

    async def _ended(
        self, snapshot: SubscriptionSnapshot, seen_at: datetime, *, is_dry_run: bool
    ) -> tuple[SubscriptionSnapshot, datetime]:
        if is_dry_run or self.ends is None:
            return snapshot, seen_at
        ended = await self.ends.cancel_now(snapshot.id)
        return (
            ended,
            await self.repository.now(),
        )  # a cancellation is final, so the time after the request is valid

    async def _apply(
        self, account_id: AccountId, snapshot: SubscriptionSnapshot, seen_at: datetime, *, is_dry_run: bool
    ) -> SubscriptionResult:
        if not is_dry_run:
            return await self.repository.apply_subscription(account_id, snapshot, seen_at)
        try:
            async with self.repository.transaction():
                applied = await self.repository.apply_subscription(account_id, snapshot, seen_at)
                raise _Incomplete(applied)  # noqa: TRY301  rolls back the transaction
        except _Incomplete as undone:
            return undone.applied

    async def _sync_unlisted(
        self, stripe_reader: StripeReader, seen_at: datetime, summary: JobSummary
    ) -> None:
        fetched: set[str] = set()
        while others := [
            other
            for other in await self.queries.unseen_since(seen_at, UNSEEN_PER_PAGE + len(fetched))
            if other[1] not in fetched
        ]:
            for account_id, subscription_id in others:
                fetched.add(subscription_id)
                fetched_at = await self.repository.now()
                snapshot = await stripe_reader.subscription(subscription_id)
                if snapshot is None:
                    summary.add_discrepancy("unknown_at_stripe", subscription_id)
                    continue
                applied = await self._apply(account_id, snapshot, fetched_at, is_dry_run=False)
                _count(applied, snapshot, summary)


def _count(applied: SubscriptionResult, snapshot: SubscriptionSnapshot, summary: JobSummary) -> None:
    if applied.outcome != "done":
        return
    before = (applied.plan_before, applied.status_before)
    if applied.credits_granted or before != (applied.plan_after, applied.status_after):
        summary.add_discrepancy("was_different", snapshot.id)
        summary.counts.update(changed=1, credits=applied.credits_granted)
