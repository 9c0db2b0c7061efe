"""Response schemas of the cron API, limited to the fields that commands show."""

from datetime import datetime

import msgspec


class CronFinding(msgspec.Struct, frozen=True):
    kind: str
    subject: str


class CronRun(msgspec.Struct, frozen=True):
    id: str
    job: str
    slot: datetime
    trigger: str
    status: str
    dry_run: bool
    counts: dict[str, int]
    findings: list[CronFinding]
    error: str | None
    duration_ms: int | None

    @property
    def is_ended(self) -> bool:
        return self.status in ("completed", "failed")


class CronRuns(msgspec.Struct, frozen=True):
    items: list[CronRun]
    next_cursor: str | None


class CronJob(msgspec.Struct, frozen=True):
    name: str
    title: str
    schedule: str
    next_due_at: datetime
    last_run: CronRun | None


class CronJobs(msgspec.Struct, frozen=True):
    items: list[CronJob]
