from datetime import datetime
from uuid import UUID

import msgspec

from features.operations.application.cron import JobStatus
from features.operations.domain.jobs import CronRun, CronStatus, JobFinding, MissedRule, Trigger


class CronRunResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    job: str
    slot: datetime
    trigger: Trigger
    status: CronStatus
    dry_run: bool
    requested_by: UUID | None
    attempts: int
    counts: dict[str, int]
    findings: list[JobFinding]
    error: str | None
    claimed_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    duration_ms: int | None


class CronRunsResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[CronRunResponse]
    next_cursor: str | None


class JobResponse(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    schedule: str
    missed: MissedRule
    time_limit_s: int
    next_due_at: datetime
    last_run: CronRunResponse | None


class JobsResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[JobResponse]


def cron_run_out(run: CronRun) -> CronRunResponse:
    return CronRunResponse(
        id=run.id,
        job=run.job,
        slot=run.slot,
        trigger=run.trigger,
        status=run.status,
        dry_run=run.is_dry_run,
        requested_by=run.requested_by,
        attempts=run.attempts,
        counts=run.counts,
        findings=list(run.findings),
        error=run.error,
        claimed_at=run.claimed_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        duration_ms=run.duration_ms,
    )


def job_out(standing: JobStatus) -> JobResponse:
    job = standing.job
    return JobResponse(
        name=job.name,
        title=job.title,
        schedule=job.schedule,
        missed=job.missed,
        time_limit_s=round(job.time_limit_s),
        next_due_at=standing.next_due_at,
        last_run=cron_run_out(standing.last_run) if standing.last_run else None,
    )


CRON_RUN_EXAMPLE: dict[str, object] = {
    "id": "5b1c7c0e-8a1e-4d8e-9f39-0a6d5c1e2b11",
    "job": "lot-expiry",
    "slot": "2026-11-01T03:15:00Z",
    "trigger": "schedule",
    "status": "completed",
    "dry_run": False,
    "requested_by": None,
    "attempts": 1,
    "counts": {"accounts": 12, "credits_expired": 340},
    "findings": [],
    "error": None,
    "claimed_at": "2026-11-01T03:15:00.011Z",
    "started_at": "2026-11-01T03:15:00.702Z",
    "ended_at": "2026-11-01T03:15:00.946Z",
    "duration_ms": 244,
}
QUEUED_EXAMPLE: dict[str, object] = {
    **CRON_RUN_EXAMPLE,
    "trigger": "operator",
    "status": "queued",
    "requested_by": "0b8f3a52-6c1d-4b8e-a4e5-7d1f0c9b2a34",
    "attempts": 0,
    "counts": {},
    "started_at": None,
    "ended_at": None,
    "duration_ms": None,
}
JOB_EXAMPLE: dict[str, object] = {
    "name": "lot-expiry",
    "title": "Credits whose time is over",
    "schedule": "*/15 * * * *",
    "missed": "latest",
    "time_limit_s": 1800,
    "next_due_at": "2026-11-01T03:30:00Z",
    "last_run": CRON_RUN_EXAMPLE,
}
