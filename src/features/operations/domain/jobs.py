"""Cron jobs and their runs."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from shared.ids import UserId

# After missed slots, ``latest`` catches up the last one, once; ``skip`` catches up none.
MissedRule = Literal["latest", "skip"]
Trigger = Literal["schedule", "catch_up", "operator"]
CronStatus = Literal["queued", "running", "completed", "failed"]
ENDED: frozenset[CronStatus] = frozenset({"completed", "failed"})
FINDINGS_MAX = 100  # stored per run; the counts include all findings


class Job(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    schedule: str  # five cron fields, in UTC
    title: str
    missed: MissedRule
    time_limit_s: float


class JobFinding(msgspec.Struct, frozen=True, kw_only=True):
    """An inconsistency that a job has found."""

    kind: str
    subject: str  # id of the affected object


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
