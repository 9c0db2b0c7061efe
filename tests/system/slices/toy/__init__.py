"""Worked example of a slice: one route, run kind, cron job, health check, retention rule and migration."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from litestar import Controller, get
from litestar.di import NamedDependency

from core.api.health import HealthCheck
from core.engine.run_context import RunContext
from core.engine.workflow import RunResult, Workflow
from core.wiring.slice import ApiParts, Resources, Slice, WorkerParts
from features.operations.domain.jobs import Job, Report
from features.operations.domain.retention import RetentionRule
from features.runs.domain.kinds import ResultLink, RunKind
from features.runs.domain.run import RunEnd
from infrastructure.database.clients import AdminClient
from shared.http.route_policy import PUBLIC


@dataclass(frozen=True)
class Toys:
    session: AdminClient

    async def add(self, name: str) -> int:
        await self.session.fetch("insert into toys (name) values ($1) on conflict do nothing", name)
        return await self.count()

    async def count(self) -> int:
        (row,) = await self.session.fetch("select count(*) as found from toys")
        return row["found"]

    async def state(self) -> str:
        return f"{await self.count()} toys"

    async def report(self, *, is_dry_run: bool) -> Report:
        del is_dry_run
        return Report(counts={"toys": await self.count()})

    async def build(self, run: RunContext) -> RunResult:
        await run.step("build", lambda: self.add(str(run.run.id)), returns=int, percent=50)
        return RunResult(RunEnd(status="completed", outcome="completed"))


class ToysController(Controller):
    path = "/v1/toys"
    opt = PUBLIC

    @get("/", operation_id="countToys", summary="Toys")
    async def count_toys(self, toys: NamedDependency[Toys]) -> dict[str, int]:
        """The number of toys."""
        return {"count": await toys.count()}


def toys(resources: Resources) -> Toys:
    return Toys(resources.database.admin("toys"))


def api(resources: Resources) -> ApiParts:
    made = toys(resources)
    return ApiParts(dependencies={"toys": made}, health_checks={"toys": HealthCheck("local", made.state)})


def worker(resources: Resources) -> WorkerParts:
    made = toys(resources)
    return WorkerParts(workflows=(Workflow("toy", made.build),), job_handlers={"toy-count": made.report})


TOY = Slice(
    name="toy",
    controllers=(ToysController,),
    run_kinds=(RunKind(name="toy", result_link=ResultLink(template="/v1/toys/{run_id}")),),
    jobs=(
        Job(name="toy-count", schedule="* * * * *", title="Count toys", missed="latest", time_limit_s=60.0),
    ),
    retention={"daily-cleanup": (RetentionRule("public.toys", timedelta(days=30)),)},
    migrations=Path(__file__).parent / "migrations",
    api=api,
    worker=worker,
)
