"""Tests of oslira cron."""

import json

import pytest

from core.cli.commands import cron as command
from features.operations.controllers.cron import CronRunResponse, JobResponse
from tests.integration.cli.responses import example, problem
from tests.support.scripted_server import http

CRON_RUN = example(
    CronRunResponse,
    job="lot-expiry",
    status="completed",
    counts={"accounts": 12, "credits_expired": 340},
    duration_ms=244,
)
QUEUED = {**CRON_RUN, "status": "queued", "counts": {}, "duration_ms": None}
JOB = example(JobResponse, name="lot-expiry", schedule="*/15 * * * *", last_run=CRON_RUN)
FAILED = {**CRON_RUN, "status": "failed", "error": "time_limit", "counts": {}}
FOUND = {**CRON_RUN, "findings": [{"kind": "unknown_at_stripe", "subject": "sub_1"}]}


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(command, "POLL_INTERVAL_S", 0.0)


async def test_jobs_are_a_table(oslira, server):
    server.script(http(200, {"items": [JOB, {**JOB, "name": "new-job", "last_run": None}]}))

    answer = await oslira("cron", "list")

    assert answer.exit_code == 0
    for said in (
        "lot-expiry",
        "*/15 * * * *",
        "2026-01-01 09:30",
        "completed",
        "credits expired: 340",
    ):
        assert said in answer.stdout


@pytest.mark.parametrize(
    ("last", "code", "said"),
    [
        (CRON_RUN, 0, "340"),
        (FOUND, 0, "unknown_at_stripe"),
        (FAILED, 1, "time_limit"),
    ],
)
async def test_wait_option_waits_for_the_end_of_the_job(oslira, server, last, code, said):
    server.script(http(202, QUEUED), http(200, QUEUED), http(200, last))

    answer = await oslira("cron", "run", "lot-expiry", "--dry-run", "--wait")

    assert (answer.exit_code, said in answer.stdout) == (code, True)
    assert [asked.path for asked in server.asked] == [
        "/v1/admin/cron/lot-expiry/run",
        *[f"/v1/admin/cron/lot-expiry/runs/{QUEUED['id']}"] * 2,
    ]
    assert json.loads(server.asked[0].body) == {"dry_run": True}


async def test_run_without_the_wait_option_returns_at_once(oslira, server):
    server.script(http(202, QUEUED))

    answer = await oslira("cron", "run", "lot-expiry")

    assert (answer.exit_code, "oslira cron history lot-expiry" in answer.stderr) == (0, True)


@pytest.mark.parametrize(
    ("items", "said"),
    [([CRON_RUN, FAILED], ("244 ms", "time_limit")), ([], ("has not run yet",))],
)
async def test_history_is_a_table(oslira, server, items, said):
    server.script(http(200, {"items": items, "next_cursor": None}))

    answer = await oslira("cron", "history", "lot-expiry", "--limit", "5")

    assert all(one in answer.stdout for one in said)
    assert server.asked[0].path == "/v1/admin/cron/lot-expiry/runs?limit=5"


async def test_json_option_prints_json(oslira, server):
    server.script(http(200, {"items": [JOB]}))

    answer = await oslira("cron", "list", "--json")

    assert json.loads(answer.stdout)["name"] == "lot-expiry"


async def test_missing_operator_role_is_reported(oslira, server):
    server.script(problem(403, "operators_only", "This is for operators."))

    answer = await oslira("cron", "list")

    assert (answer.exit_code, "This is for operators." in answer.output) == (1, True)


async def test_local_user_is_an_operator(locally, server):
    server.script(http(200, {"items": []}))

    answer = await locally("cron", "list")

    assert answer.exit_code == 0
