from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg, FromPath, PathParameter

from features.operations.application.cron import Cron
from features.operations.controllers.cron_schemas import (
    CRON_RUN_EXAMPLE,
    JOB_EXAMPLE,
    QUEUED_EXAMPLE,
    CronRunResponse,
    CronRunsResponse,
    JobsResponse,
    cron_run_out,
    job_out,
)
from shared.caller import Caller
from shared.http.parameters import Cursor, Limit
from shared.http.route_policy import OPERATORS_ONLY, SHOWS_NO_TENANT
from shared.middleware.idempotency import effect_id
from shared.timestamps import as_utc

JobName = Annotated[str, PathParameter(description="Its name, as the list has it.")]


class CronRunRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    dry_run: bool = False
    slot: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


CronRunBody = Annotated[CronRunRequest, BodyKwarg(examples=[Example(value={"dry_run": True})])]


class CronController(Controller):
    path = "/v1/admin/cron"
    tags = ("Administration",)
    opt = OPERATORS_ONLY | SHOWS_NO_TENANT

    @get(
        "/",
        operation_id="listCronJobs",
        summary="Jobs",
        responses={
            200: ResponseSpec(
                JobsResponse, description="All jobs", examples=[Example(value={"items": [JOB_EXAMPLE]})]
            )
        },
    )
    async def jobs(self, cron: NamedDependency[Cron]) -> JobsResponse:
        """What is done by the clock: when it is due next, and what became of it the last time. Schedules are
        in UTC: minute, hour, day of the month, month, day of the week.
        """
        return JobsResponse(items=[job_out(standing) for standing in await cron.standings()])

    @get(
        "/{job:str}/runs",
        operation_id="listCronRuns",
        summary="History",
        responses={
            200: ResponseSpec(
                CronRunsResponse,
                description="A page",
                examples=[Example(value={"items": [CRON_RUN_EXAMPLE], "next_cursor": None})],
            )
        },
    )
    async def runs(
        self, job: JobName, cron: NamedDependency[Cron], cursor: Cursor = None, limit: Limit = 50
    ) -> CronRunsResponse:
        """What became of a job, newest first: how long it took, what it counted, what it found."""
        page = await cron.page(job, cursor=cursor, limit=limit)
        return CronRunsResponse(items=[cron_run_out(run) for run in page.items], next_cursor=page.next_cursor)

    @get(
        "/{job:str}/runs/{run_id:uuid}",
        operation_id="getCronRun",
        summary="One run of a job",
        responses={
            200: ResponseSpec(
                CronRunResponse, description="The run", examples=[Example(value=CRON_RUN_EXAMPLE)]
            )
        },
    )
    async def run(self, job: JobName, run_id: FromPath[UUID], cron: NamedDependency[Cron]) -> CronRunResponse:
        """Whether it has ended, and how."""
        return cron_run_out(await cron.find(job, run_id))

    @post(
        "/{job:str}/run",
        operation_id="runCronJob",
        summary="Run a job",
        status_code=202,
        opt={"shows_no_tenant": False},
        responses={
            202: ResponseSpec(
                CronRunResponse,
                description="It is in the queue, or was before",
                examples=[Example(value=QUEUED_EXAMPLE)],
            )
        },
    )
    async def start(
        self,
        request: Request[Caller, Any, Any],
        job: JobName,
        data: CronRunBody,
        cron: NamedDependency[Cron],
    ) -> CronRunResponse:
        """Have a job carried out now, or for a `slot` of the past that nobody carried out. A slot is carried
        out once: asked for again, the run that it has is returned. With `dry_run` it counts what it would
        do and changes nothing.
        """
        run = await cron.run(
            job,
            run_id=effect_id(request.scope),
            operator_id=request.user.user_id,
            is_dry_run=data.dry_run,
            slot=as_utc(data.slot),
        )
        return cron_run_out(run)
