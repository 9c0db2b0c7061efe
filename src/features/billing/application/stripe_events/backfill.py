from dataclasses import dataclass
from datetime import timedelta

from features.billing.application.stripe_events.admin import StripeEventAdmin
from features.billing.domain.job_summary import JobSummary
from shared.clock import Clock

LOOK_BACK = timedelta(days=2)
# Stripe may still be delivering events that are newer than this.
UNDER_WAY = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class StripeEventBackfill:
    """Job that adds events which Stripe lists but did not deliver."""

    inbox: StripeEventAdmin
    now: Clock

    async def run(self, *, is_dry_run: bool) -> JobSummary:
        summary = JobSummary()
        if self.inbox.stripe_reader is None:
            return summary
        until = self.now() - UNDER_WAY
        since = until - LOOK_BACK
        if is_dry_run:
            summary.counts["missing"] = len(await self.inbox.missing(since, until))
        else:
            summary.counts["fetched"] = await self.inbox.fetch_missing(since, until)
        return summary
