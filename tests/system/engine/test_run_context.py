"""Guarantees of RunContext: steps, retries, failures and the end of a run."""

import asyncio
import dataclasses
from types import SimpleNamespace

import pytest

from core.engine.engine import running_engine
from core.engine.run_context import RunCancelled, StepFailed
from core.engine.workflow import RunResult, Workflow
from features.runs.domain.run import RunEnd
from shared.errors import Invalid, Unavailable
from shared.retry import RetryPolicy
from tests.support import until
from tests.system.engine.history import history_of
from tests.system.engine.three_steps import parts

HASTY = RetryPolicy(attempts_max=3, wait_s_first=0.001)
COMPLETED = RunResult(RunEnd(status="completed", outcome="completed", credits_charged=5))


class Busy(Unavailable):
    code = "busy"
    text = "Not now."

    def __str__(self):
        return "Come back later."


def own_failure(code):
    return type("OwnFailure", (Unavailable,), {"code": code, "text": "Not now."})


class NotToday(Invalid):
    code = "not_today"
    text = "Not now."

    def __str__(self):
        return "Not today."


@pytest.fixture(scope="module")
async def engine(engine_place):
    """Running engine; a run of kind `scripted` executes the script named in its subject."""
    scripts = {}

    async def scripted(work):
        return await scripts[work.run.subject["script"]](work)

    async with parts(engine_place) as opened:
        workflows = (*opened.workflows, Workflow("scripted", scripted))
        async with running_engine(dataclasses.replace(opened, workflows=workflows)) as engine:
            yield SimpleNamespace(executor=engine.executor, scripts=scripts)


@pytest.fixture
def execute(engine, book):
    """Function that executes a script as a run and returns the ended run."""

    async def execute(script):
        engine.scripts[script.__name__] = script
        run_id = await book.start(kind="scripted", script=script.__name__)
        await book.ended([run_id])
        return await book.find(run_id)

    return execute


def step(work, call, *, name="only", returns=int):
    return work.step(name, call, returns=returns, percent=50, retry=HASTY)


async def test_step_is_retried_after_unavailable(execute):
    calls = []

    async def call():
        calls.append(None)
        if len(calls) < 3:
            raise Busy
        return len(calls)

    async def third_time(work):
        assert await step(work, call, returns=int) == 3
        return COMPLETED

    assert (await execute(third_time)).status == "completed"


async def test_run_fails_with_the_error_code_after_the_last_attempt_without_charge(execute, book):
    calls = []

    async def call():
        calls.append(None)
        raise Busy

    async def never(work):
        await step(work, call)
        return COMPLETED

    run = await execute(never)
    assert (run.status, run.error, len(calls)) == ("failed", "busy", 3)
    assert await book.all_charged_once()


@pytest.mark.parametrize("code", ["database_unavailable", "slot_lost", "slots_busy"])
async def test_failure_of_our_own_database_or_slots_is_retried_without_limit(execute, code):
    calls = []

    async def call():
        calls.append(None)
        if len(calls) <= 3 * HASTY.attempts_max:
            raise own_failure(code)
        return 0

    async def waited(work):
        await step(work, call)
        return COMPLETED

    assert (await execute(waited)).status == "completed"


async def test_domain_error_is_not_retried(execute):
    calls = []

    async def call():
        calls.append(None)
        raise NotToday

    async def refused(work):
        try:
            await step(work, call)
        except StepFailed as refusal:
            outcome = RunEnd(status="completed", outcome=refusal.code, credits_charged=1)
            return RunResult(outcome)
        return COMPLETED

    run = await execute(refused)
    assert (run.outcome, run.credits_charged, len(calls)) == ("not_today", 1, 1)


@pytest.mark.parametrize("place", ["inside a step", "between steps"])
async def test_unexpected_exception_fails_the_run_without_charge(execute, book, place):
    async def call():
        raise ZeroDivisionError

    async def mistaken(work):
        if place == "inside a step":
            await step(work, call)
        raise ZeroDivisionError

    run = await execute(mistaken)
    assert (run.status, run.error, run.credits_charged) == ("failed", "internal_error", 0)
    assert await book.all_charged_once()


async def test_failed_delivery_is_not_charged(execute, book):
    async def deliver():
        raise ZeroDivisionError

    async def undeliverable(_):
        return dataclasses.replace(COMPLETED, deliver=deliver)

    run = await execute(undeliverable)
    assert (run.status, run.error, run.credits_charged) == ("failed", "internal_error", 0)
    assert await book.all_charged_once()


async def test_parallel_steps_are_stored_in_call_order(execute, book):
    async def slow(seconds):
        await asyncio.sleep(seconds)
        return seconds

    async def side_by_side(work):
        waits = {"a": 0.02, "b": 0.01, "c": 0.0}
        kept = await asyncio.gather(
            *(step(work, lambda s=s: slow(s), name=name, returns=float) for name, s in waits.items())
        )
        assert kept == list(waits.values())
        return COMPLETED

    run = await execute(side_by_side)
    assert (await history_of(book.owner, run)).names == ["a", "b", "c"]
    assert run.status == "completed"


async def test_cancelled_run_may_charge_partially(engine, book):
    reached = asyncio.Event()

    async def endless():
        reached.set()
        await asyncio.Event().wait()

    async def partly(work):
        try:
            await step(work, endless)
        except RunCancelled as cancelled:
            ending = RunEnd(status="cancelled", outcome=f"cancelled_in_{cancelled.step}", credits_charged=2)
            return RunResult(ending)
        return COMPLETED

    engine.scripts["partly"] = partly
    run_id = await book.start(kind="scripted", script="partly")
    await reached.wait()
    assert await book.cancel(run_id) == "requested"
    await book.ended([run_id])

    run = await book.find(run_id)
    assert (run.status, run.outcome, run.credits_charged) == ("cancelled", "cancelled_in_only", 2)
    assert await book.all_charged_once()


@pytest.mark.battery
async def test_claimed_but_idle_workflow_is_reenqueued(engine, book):
    run_id = await book.start(queue="no_worker")

    await book.owner.execute(
        """
        update dbos.workflow_status
        set status = 'PENDING', executor_id = $2, application_version = 'oslira', queue_name = 'hot'
        where workflow_uuid = $1
        """,
        *(str(run_id), engine.executor),
    )

    await book.ended([run_id])
    assert (await book.find(run_id)).status == "completed"


@pytest.mark.battery
async def test_step_that_could_not_be_stored_is_executed_again(engine, book, logs):
    calls = []

    async def call():
        calls.append(None)
        if len(calls) == 1:
            await book.owner.execute("alter table dbos.operation_outputs rename to hidden")
        return 0

    async def unlucky(work):
        await step(work, call)
        return COMPLETED

    engine.scripts["unlucky"] = unlucky
    run_id = await book.start(kind="scripted", script="unlucky")
    await until(lambda: any(entry["event"] == "step_not_stored" for entry in logs))
    await book.owner.execute("alter table dbos.hidden rename to operation_outputs")
    await book.ended([run_id])

    run = await book.find(run_id)
    assert (run.status, run.attempt, len(calls)) == ("completed", 2, 2)
