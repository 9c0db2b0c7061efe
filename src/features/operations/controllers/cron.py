"""Operators' routes for cron jobs and their runs."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, PathParameter

from features.operations.application.cron import Cron, JobStatus
from features.operations.domain.jobs import CronRun, CronStatus, JobFinding, MissedRule, Trigger
from shared.http.parameters import AuthenticatedRequest, Cursor, Limit, RequestBody, TimeField
from shared.http.responses import struct_from
from shared.http.route_policy import OPERATORS_ONLY, SHOWS_NO_TENANT
from shared.middleware.idempotency import effect_id
from shared.pagination import Page
from shared.timestamps import as_utc

JobName = Annotated[str, PathParameter(description="The name of the job, from the list of jobs.")]


class CronRunRequest(RequestBody, frozen=True, kw_only=True):
    dry_run: bool = False
    slot: TimeField | None = None


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
    findings: tuple[JobFinding, ...]
    error: str | None
    claimed_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    duration_ms: int | None


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


def _run_response(run: CronRun) -> CronRunResponse:
    return struct_from(CronRunResponse, run, dry_run=run.is_dry_run)


def _job_response(status: JobStatus) -> JobResponse:
    return struct_from(
        JobResponse,
        status.job,
        time_limit_s=round(status.job.time_limit_s),
        next_due_at=status.next_due_at,
        last_run=_run_response(status.last_run) if status.last_run else None,
    )


class CronController(Controller):
    path = "/v1/admin/cron"
    tags = ("Administration",)
    opt = OPERATORS_ONLY | SHOWS_NO_TENANT

    @get("/")
    async def list_cron_jobs(self, cron: NamedDependency[Cron]) -> JobsResponse:
        """List the cron jobs, with the next due time and the last run of each.

        Schedules are in UTC: minute, hour, day of the month, month, day of the week.
        """
        return JobsResponse(items=[_job_response(status) for status in await cron.standings()])

    @get("/{job:str}/runs")
    async def list_cron_runs(
        self, job: JobName, cron: NamedDependency[Cron], cursor: Cursor = None, limit: Limit = 50
    ) -> Page[CronRunResponse]:
        """List the runs of a job, newest first, with their duration, counts and findings."""
        page = await cron.page(job, cursor=cursor, limit=limit)
        return page.map(_run_response)

    @get("/{job:str}/runs/{run_id:uuid}")
    async def get_cron_run(
        self, job: JobName, run_id: FromPath[UUID], cron: NamedDependency[Cron]
    ) -> CronRunResponse:
        """Get one run of a job."""
        return _run_response(await cron.find(job, run_id))

    @post("/{job:str}/run", status_code=202, opt={"shows_no_tenant": False})
    async def run_cron_job(
        self,
        request: AuthenticatedRequest,
        job: JobName,
        data: JSONBody[CronRunRequest],
        cron: NamedDependency[Cron],
    ) -> CronRunResponse:
        """Run a job now, or for a missed `slot` in the past.

        A slot runs once: a second request returns the existing run. With `dry_run` the job counts what it
        would do and changes nothing.
        """
        run = await cron.run(
            job,
            run_id=effect_id(request.scope),
            operator_id=request.user.user_id,
            is_dry_run=data.dry_run,
            slot=as_utc(data.slot),
        )
        return _run_response(run)
