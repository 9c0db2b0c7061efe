"""What is done by the clock, and what became of it."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from shared.ids import UserId

# Of a slot that nobody was there for: the last one is made up for, once; or none is.
MissedRule = Literal["latest", "skip"]
Trigger = Literal["schedule", "catch_up", "operator"]
CronStatus = Literal["queued", "running", "completed", "failed"]
ENDED: frozenset[CronStatus] = frozenset({"completed", "failed"})
FINDINGS_MAX = 100  # that are kept of a run; the counts have them all


class Job(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    schedule: str  # five fields, as cron has them; UTC
    title: str
    missed: MissedRule
    time_limit_s: float


class JobFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was not as it should be."""

    kind: str
    subject: str  # whose, or which: an id


class Report(msgspec.Struct, frozen=True, kw_only=True):
    counts: dict[str, int]
    findings: tuple[JobFinding, ...] = ()


class CronRun(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    slot: datetime
    id: UUID
    trigger: Trigger
    status: CronStatus
    is_dry_run: bool
    requested_by: UserId | None
    executor: str | None
    attempts: int
    counts: dict[str, int]
    findings: tuple[JobFinding, ...]
    error: str | None
    claimed_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def duration_ms(self) -> int | None:
        if self.started_at is None or self.ended_at is None:
            return None
        return round((self.ended_at - self.started_at).total_seconds() * 1_000)
