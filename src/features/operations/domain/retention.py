"""Retention rules: how long each table keeps its rows.

The database function ``scheduling.purge`` states for each table the column from which the period counts.
"""

from datetime import timedelta

import msgspec

NO_TIME = timedelta(0)  # for rows with their own time of expiry
ROWS_PER_BATCH = 1_000
ACCOUNTS_PER_BATCH = 20  # small, because each account's dependent rows are deleted with it


class RetentionRule(msgspec.Struct, frozen=True):
    table: str
    retention: timedelta
    rows_per_batch: int = ROWS_PER_BATCH

    @property
    def name(self) -> str:
        """The table's name without its schema."""
        return self.table.rpartition(".")[2]


# Dependent rows come before the rows they reference. The period of deleted rows counts from the deletion.
RECORDS = (
    RetentionRule("public.ai_usage_logs", timedelta(days=90)),
    RetentionRule("public.scrape_logs", timedelta(days=90)),
    RetentionRule("public.analyses", timedelta(days=30)),
    RetentionRule("public.leads", timedelta(days=30)),
    RetentionRule("public.business_profiles", timedelta(days=30)),
    RetentionRule("public.runs", timedelta(days=30)),
    RetentionRule("public.accounts", timedelta(days=30), ACCOUNTS_PER_BATCH),
    RetentionRule("public.webhook_messages", timedelta(days=30)),
    RetentionRule("public.webhook_events", timedelta(days=400)),
    RetentionRule("public.cron_runs", timedelta(days=400)),
)
CACHES = (
    RetentionRule("public.completion_cache", NO_TIME),
    RetentionRule("public.anonymous_analyses", NO_TIME),
)
REQUEST_RECORDS = (
    RetentionRule("traffic.idempotency_keys", timedelta(hours=25)),
    RetentionRule("traffic.rate_windows", NO_TIME),
    RetentionRule("traffic.leases", NO_TIME),
    RetentionRule("traffic.requests", timedelta(days=90)),
    RetentionRule("traffic.request_counts", timedelta(days=90)),
    RetentionRule("traffic.data_points", timedelta(days=90)),
)
