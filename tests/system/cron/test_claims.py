"""Claims of cron slots: unique, and enqueued in the same transaction."""

import asyncio
import os
import sys
import uuid
from datetime import timedelta

import pytest

from features.operations.application.ports import Claim
from features.operations.domain.jobs import Report
from infrastructure.database.operations.cron import PostgresCron
from shared.ids import UserId
from tests.conftest import PROJECT
from tests.system.cron.jobs import at

SLOT = at("2026-05-01T03:00:00")
QUEUED = "select count(*) from dbos.workflow_status where workflow_uuid like 'cron:' || $1 || ':%'"

SLOTS = "select slot from cron_runs where job = $1 order by slot"
FORGET = "delete from dbos.workflow_status where workflow_uuid like 'cron:' || $1 || ':%'"
MAKE_OLDER = "update cron_runs set claimed_at = now() - interval '2 hours' where job = any ($1)"


@pytest.fixture
def job_name():
    """Name that only this test uses."""
    return "job-" + "".join(chr(97 + int(digit, 16)) for digit in uuid.uuid4().hex[:12])


@pytest.fixture
async def executor(cron_owner):
    name = str(uuid.uuid4())
    await cron_owner.execute("select traffic.register_worker($1, 'here', '{}')", name)
    return name


def claim(job, *, slot=SLOT, trigger="schedule", **fields):
    return Claim(job=job, slot=slot, id=fields.pop("id", uuid.uuid4()), trigger=trigger, **fields)


def by_operator(job, **fields):
    return claim(job, trigger="operator", requested_by=UserId(uuid.uuid4()), **fields)


async def test_one_of_many_concurrent_claims_of_a_slot_wins(
    cron_owner, cron_database, other_database, job_name
):
    rivals = [PostgresCron(database.admin("tests")) for database in (cron_database, other_database)] * 4
    claims = [claim(job_name), by_operator(job_name)] * 4

    outcomes = await asyncio.gather(*(rival.claim(one) for rival, one in zip(rivals, claims, strict=True)))

    assert sorted(outcome for outcome, _ in outcomes) == ["claimed"] + ["existing"] * 7
    assert len({run.id for _, run in outcomes}) == 1
    assert await cron_owner.fetchval(QUEUED, job_name) == 1


async def test_rolled_back_claim_leaves_no_row_and_no_workflow(cron_owner, cron_database, job_name):
    session = cron_database.admin("tests")
    with pytest.raises(LookupError):
        async with session.transaction():
            await PostgresCron(session).claim(claim(job_name))
            raise LookupError

    assert await cron_owner.fetchval(QUEUED, job_name) == 0
    assert not await cron_owner.fetch("select from cron_runs where job = $1", job_name)


async def test_repeated_operator_request_returns_the_same_run(cron, job_name):
    fetched = by_operator(job_name)
    _, first = await cron.claim(fetched)

    outcome, second = await cron.claim(by_operator(job_name, id=fetched.id, slot=SLOT + timedelta(seconds=9)))

    assert (outcome, second) == ("existing", first)


async def test_slot_before_the_installation_is_not_caught_up(cron, job_name):
    before = at("1999-12-31T03:00:00")

    assert await cron.claim(claim(job_name, slot=before, trigger="catch_up")) == ("before_installation", None)
    assert (await cron.claim(claim(job_name, trigger="catch_up")))[0] == "claimed"


async def test_only_the_current_attempt_finishes_a_run(cron, executor, job_name):
    await cron.claim(claim(job_name))
    _, first = await cron.begin(job_name, SLOT, executor=executor, attempts_max=2)
    _, second = await cron.begin(job_name, SLOT, executor=executor, attempts_max=2)

    ended = [
        await cron.finish(run, Report(counts={"n": run.attempts}), error=None)
        for run in (first, second, second)
    ]

    assert ended == [False, True, False]
    found = await cron.find(job_name, first.id)
    assert (found.status, found.counts) == ("completed", {"n": 2})
    assert (await cron.begin(job_name, SLOT, executor=executor, attempts_max=2))[0] == "ended"


async def test_fenced_executor_begins_no_run(cron, cron_owner, executor, job_name):
    await cron.claim(claim(job_name))
    await cron_owner.execute("update traffic.workers set stopped_at = now() where executor = $1", executor)

    assert (await cron.begin(job_name, SLOT, executor=executor, attempts_max=2))[0] == "fenced"
    assert (await cron.begin(job_name, SLOT + timedelta(1), executor=executor, attempts_max=2))[
        0
    ] == "unknown"


async def test_run_without_an_engine_workflow_is_closed_as_lost(cron, cron_owner, job_name):
    other = job_name + "-other"
    _, lost = await cron.claim(claim(job_name))
    _, kept = await cron.claim(claim(other))
    await cron_owner.execute(
        "delete from dbos.workflow_status where workflow_uuid like 'cron:' || $1 || ':%'", job_name
    )
    await cron_owner.execute(
        "update cron_runs set claimed_at = now() - interval '2 hours' where job in ($1, $2)", job_name, other
    )

    await cron.fail_stalled()

    lost, kept = await cron.find(job_name, lost.id), await cron.find(other, kept.id)
    assert (lost.status, lost.error) == ("failed", "lost")
    assert kept.status == "queued"


async def test_history_is_sorted_newest_first(cron, job_name):
    for day in range(5):
        await cron.claim(claim(job_name, slot=SLOT + timedelta(days=day)))
    await cron.claim(by_operator(job_name, slot=SLOT + timedelta(days=9), is_dry_run=True))

    whole = await cron.page(job_name, before=None, runs_max=10)

    assert [run.slot for run in whole] == sorted((run.slot for run in whole), reverse=True)
    assert len(whole) == 6
    assert (await cron.last_runs())[job_name] == whole[1]


@pytest.mark.battery
async def test_three_scheduler_processes_claim_every_slot_once(cron_addresses, cron_owner):
    slots_min = 10
    words = (cron_addresses.owner, cron_addresses.user, cron_addresses.admin, str(slots_min))
    processes = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.system.cron.scheduler_process", *words),
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT / "src")},
        )
        for _ in range(3)
    ]
    codes = await asyncio.gather(*(process.wait() for process in processes))

    slots = [row["slot"] for row in await cron_owner.fetch(SLOTS, "every-second")]
    assert codes == [0, 0, 0]
    assert len(slots) >= slots_min
    assert {slot.microsecond for slot in slots} == {0}
    assert await cron_owner.fetchval(QUEUED, "every-second") == len(slots)
