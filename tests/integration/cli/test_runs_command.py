"""Tests of oslira runs."""

import json

import pytest

from features.runs.controllers.schemas import RunStartedResponse
from tests.integration.cli.responses import (
    ANALYSIS,
    CANCELLED,
    COMPLETED,
    FAILED,
    RUN,
    RUN_ID,
    example,
    problem,
    shown,
)
from tests.support.scripted_server import http

QUEUED = {
    **RUN,
    "status": "queued",
    "progress": 0,
    "current_step": None,
    "queue": {"position": 3, "starts_in_s": 7},
}
BULK = {
    **COMPLETED,
    "kind": "bulk_analysis",
    "subject": {"type": "light", "count": 40},
    "credits_charged": 38,
}


def page(*runs, cursor=None):
    return http(200, {"items": runs, "next_cursor": cursor})


async def test_runs_are_listed_without_a_subcommand(oslira, server):
    server.script(page(QUEUED, FAILED, BULK))

    answer = await oslira("runs", "--status", "failed", "--limit", "3")

    assert answer.exit_code == 0
    assert server.asked[0].path == "/v1/runs?status=failed&limit=3"
    for said in (RUN_ID, "@slow.kitchen", "queued", "failed", "private", "40 profiles (light)", "bulk", "38"):
        assert said in answer.stdout


async def test_pages_are_followed_up_to_the_limit(oslira, server):
    server.script(page(*[RUN] * 100, cursor="c1"), page(*[RUN] * 50, cursor="c2"), http(500, {}))

    answer = await oslira("runs", "list", "--limit", "150", "--json")

    assert len([json.loads(line) for line in answer.stdout.splitlines()]) == 150
    assert [asked.path for asked in server.asked] == ["/v1/runs?limit=100", "/v1/runs?limit=50&cursor=c1"]


@pytest.mark.parametrize(
    ("words", "said"), [((), "oslira analyze"), (("--status", "paused"), "No run has this status")]
)
async def test_empty_list_of_runs_is_shown_as_a_sentence(oslira, server, words, said):
    server.script(page())

    answer = await oslira("runs", *words)

    assert (answer.exit_code, said in answer.stdout) == (0, True)


async def test_a_run_is_shown_with_its_result(oslira, server):
    server.script(shown(COMPLETED), http(200, ANALYSIS))

    answer = await oslira("runs", "show", RUN_ID)

    assert answer.exit_code == 0
    assert ("completed" in answer.stdout, "72 of 100" in answer.stdout) == (True, True)


async def test_a_run_without_a_result_says_why_and_what_it_cost(oslira, server):
    server.script(shown(FAILED), http(500, {}))

    answer = await oslira("runs", "show", RUN_ID)

    assert answer.exit_code == 0
    assert "Nothing charged, 5 credits returned. There was nothing to analyse." in answer.stdout


@pytest.mark.parametrize(("ahead", "said"), [(3, "3 ahead"), (0, "next")])
async def test_queued_run_shows_its_position(oslira, server, ahead, said):
    server.script(shown({**QUEUED, "queue": {"position": ahead, "starts_in_s": 7}}))

    answer = await oslira("runs", "show", RUN_ID)

    assert f"Queued ({said})" in answer.stdout


@pytest.mark.parametrize(("end", "exit_code"), [(CANCELLED, 0), (COMPLETED, 1)], ids=["in time", "too late"])
async def test_cancelling_waits_for_the_end_and_says_what_was_charged(oslira, server, end, exit_code):
    server.script(http(202, RUN), shown(RUN), shown(end, '"5"'))

    answer = await oslira("runs", "cancel", RUN_ID)

    assert server.asked[0].path == f"/v1/runs/{RUN_ID}/cancel"
    assert answer.exit_code == exit_code
    assert f"{end['credits_charged']} credits charged" in answer.stdout


async def test_a_retry_is_watched_under_its_new_id(oslira, server):
    other = RUN_ID.replace("0f8d", "1f8d")
    again = {**COMPLETED, "run_id": other, "retry_of": RUN_ID, "result_url": f"/v1/analyses/{other}"}
    server.script(http(202, example(RunStartedResponse, run_id=other)), shown(again), http(200, ANALYSIS))

    answer = await oslira("runs", "retry", RUN_ID)

    assert answer.exit_code == 0
    assert [asked.path for asked in server.asked] == [
        f"/v1/runs/{RUN_ID}/retry",
        f"/v1/runs/{other}",
        f"/v1/analyses/{other}",
    ]


@pytest.mark.parametrize(("end", "exit_code"), [(FAILED, 1), (CANCELLED, 130), (BULK, 0)])
async def test_watch_exits_with_a_code_for_the_outcome(oslira, server, end, exit_code):
    server.script(shown(RUN), shown(end, '"5"'), http(500, {}))

    answer = await oslira("runs", "watch", RUN_ID)

    assert answer.exit_code == exit_code


async def test_unknown_run_is_reported_as_a_sentence(oslira, server):
    server.script(problem(404, "run_not_found", "There is no such run, or it is not yours."))

    answer = await oslira("runs", "watch", RUN_ID)

    assert answer.exit_code == 1
    assert answer.stderr.endswith("Error: There is no such run, or it is not yours. (run_not_found)\n")


async def test_invalid_run_id_is_rejected_before_any_request(oslira, server):
    server.script(http(500, {}))

    assert (await oslira("runs", "show", "5")).exit_code == 2
    assert server.asked == []
