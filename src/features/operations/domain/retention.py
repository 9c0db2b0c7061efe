"""Retention rules: how long each table keeps its rows. The slice that owns a table declares its rule.

The database table ``scheduling.purge_conditions`` states which rows of a table are purged; the migration
that creates a table adds its condition.
"""

from datetime import timedelta

import msgspec

NO_TIME = timedelta(0)  # for rows with their own time of expiry
ROWS_PER_BATCH = 1_000
ACCOUNTS_PER_BATCH = 20  # small, because each account's dependent rows are deleted with it


class RetentionRule(msgspec.Struct, frozen=True):
    """The period of deleted rows counts from the deletion."""

    table: str
    retention: timedelta
    rows_per_batch: int = ROWS_PER_BATCH

    @property
    def name(self) -> str:
        """The table's name without its schema."""
        return self.table.rpartition(".")[2]
