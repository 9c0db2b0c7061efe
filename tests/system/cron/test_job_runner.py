"""Execution of claimed slots by the engine."""

import asyncio
import dataclasses
import uuid
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from core.cron.job_runner import JobRunner
from core.engine.engine import running_engine
from core.engine.workflow import Queue, SystemWorkflow
from core.wiring.bootstrap import read_runtime
from core.wiring.engine import engine_config
from core.wiring.resources import open_resources
from core.wiring.slice import WorkerParts
from features.operations.application.ports import Claim
from features.operations.domain.errors import JobUnknown
from features.operations.domain.jobs import JobFinding, Report
from infrastructure.database.operations.cron import PostgresCron
from shared.errors import Unavailable
from shared.retry import RetryPolicy
from tests.support import until
from tests.system.cron.jobs import Counting, at, job
from tests.system.engine.three_steps import nothing

SLOT = at("2026-05-01T03:00:00")
QUEUE = Queue(name="cron", poll_interval_s=0.05, worker_concurrency=4)
IS_ALIVE = "select (stopped_at is null)::int from traffic.workers where executor = $1"
WORKER = "insert into traffic.workers (executor, host, queues, heartbeat_at) values ($1, 'a', '{}', now())"
IMPATIENT = RetryPolicy(attempts_max=2, wait_s_first=0.0)


class Away(Unavailable):
    code = "away"
    text = "Not available."


class Endless:
    def __init__(self):
        self.begun = asyncio.Event()

    async def __call__(self, *, is_dry_run):
        del is_dry_run
        self.begun.set()
        await asyncio.Event().wait()


@pytest.fixture(scope="module")
async def resources(cron_addresses, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cron")
    place = read_runtime(
        {"OSLIRA_ENVIRONMENT": "local", "DATABASE_URL": cron_addresses.owner, "OSLIRA_DATA_DIR": str(folder)}
    )
    async with open_resources(place) as resources:
        yield resources


@asynccontextmanager
async def engine(resources, handlers, *, drain_s=5.0):
    jobs = {name: job(name=name, time_limit_s=0.05 if name == "exec-slow" else 60.0) for name in handlers}
    execution = JobRunner(jobs, handlers, PostgresCron(resources.database.admin("tests")), IMPATIENT)
    parts = engine_config(resources, WorkerParts(), queues=(QUEUE,))
    workflows = (SystemWorkflow("cron_job", execution.run),)
    parts = dataclasses.replace(parts, system_workflows=workflows, warm_up=nothing, drain_s=drain_s)
    async with running_engine(parts) as running:
        yield running


async def claimed(cron, name, **fields):
    claim = Claim(
        job=name, slot=SLOT, id=uuid.uuid4(), trigger="operator", requested_by=uuid.uuid4(), **fields
    )
    return (await cron.claim(claim))[1].id


async def ended(cron, name, run_id):
    async def found():
        run = await cron.find(name, run_id)
        return run if run.ended_at else None

    return await until(found)


async def test_history_contains_the_result_of_every_job(resources, cron):
    found = Report(counts={"things": 3}, findings=(JobFinding(kind="odd", subject="sub_1"),))
    handlers = {
        "exec-fine": Counting(found),
        "exec-flaky": Counting(None, Away()),
        "exec-away": Counting(None, Away(), Away()),
        "exec-refused": Counting(None, JobUnknown()),
        "exec-broken": Counting(None, LookupError()),
        "exec-slow": Endless(),
    }
    ids = {name: await claimed(cron, name) for name in (*handlers, "exec-nobodys")}
    dry_id = await claimed(cron, "exec-dry", is_dry_run=True)
    handlers["exec-dry"] = Counting()
    async with engine(resources, handlers):
        runs = {name: await ended(cron, name, run_id) for name, run_id in ids.items()}
        dry = await ended(cron, "exec-dry", dry_id)

    assert {name: (run.status, run.error) for name, run in runs.items()} == {
        "exec-fine": ("completed", None),
        "exec-flaky": ("completed", None),
        "exec-away": ("failed", "away"),
        "exec-refused": ("failed", "job_unknown"),
        "exec-broken": ("failed", "internal_error"),
        "exec-slow": ("failed", "time_limit"),
        "exec-nobodys": ("failed", "job_unknown"),
    }
    assert (runs["exec-fine"].counts, runs["exec-fine"].findings) == (found.counts, found.findings)
    assert runs["exec-fine"].duration_ms >= 0
    assert len(handlers["exec-flaky"].calls) == 2
    assert handlers["exec-dry"].calls == [True]
    assert dry.is_dry_run


async def test_job_with_findings_logs_a_warning_whatever_its_counts_are_named(cron, cron_owner):
    counts = {"findings": 1, "job": 2, "event": 4}
    report = Report(counts=counts, findings=(JobFinding(kind="odd", subject="sub_1"),))
    execution = JobRunner({"exec-found": job()}, {"exec-found": Counting(report)}, cron, IMPATIENT)
    await claimed(cron, "exec-found")
    await cron_owner.execute(WORKER, "an-executor")

    with capture_logs() as logs:
        outcome = await execution.run("an-executor", "exec-found", SLOT.isoformat())

    (entry,) = [entry for entry in logs if entry["event"] == "job_completed"]
    assert (outcome, entry["job"], entry["log_level"]) == ("done", "exec-found", "warning")
    assert (entry["findings"], entry["counts"]) == (1, counts)


async def test_job_of_a_stopped_process_completes_on_the_next(resources, cron):
    run_id, endless = await claimed(cron, "exec-moved"), Endless()
    async with engine(resources, {"exec-moved": endless}, drain_s=0.05):
        await endless.begun.wait()
    between = await cron.find("exec-moved", run_id)
    async with engine(resources, {"exec-moved": Counting()}):
        run = await ended(cron, "exec-moved", run_id)

    assert between.status == "running"
    assert (run.status, run.attempts) == ("completed", 2)


async def test_stopping_process_waits_for_its_active_job(resources, cron, cron_owner):
    run_id = await claimed(cron, "exec-last")
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Last:
        async def __call__(self, *, is_dry_run):
            del is_dry_run
            begun.set()
            await go_on.wait()
            run = await cron.find("exec-last", run_id)
            return Report(counts={"alive": await cron_owner.fetchval(IS_ALIVE, run.executor)})

    async with engine(resources, {"exec-last": Last()}):
        await begun.wait()
        asyncio.get_running_loop().call_later(0.5, go_on.set)

    run = await cron.find("exec-last", run_id)
    assert (run.status, run.attempts, run.counts) == ("completed", 1, {"alive": 1})
