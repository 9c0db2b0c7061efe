"""Tests of oslira analyze, from the request to the report."""

import asyncio
import json
import os
import signal
import sys

import pytest

from features.analysis.application.quotes import RefundTerm
from features.analysis.controllers.start_schemas import QuoteResponse
from tests.conftest import PROJECT
from tests.integration.cli.responses import (
    ANALYSIS,
    BUSINESS,
    BUSINESS_ID,
    CANCELLED,
    COMPLETED,
    COSTS,
    FAILED,
    RUN,
    RUN_ID,
    STARTED,
    example,
    problem,
    shown,
)
from tests.support import free_port, until
from tests.support.scripted_server import http, stall
from tests.unit.core.settings.test_settings import SERVER

FOR_BUSINESS = ("--business", BUSINESS_ID)
NOT_MODIFIED = http(304, b"", retry_after="0")


async def test_a_run_is_watched_to_its_end_and_its_result_can_be_read(oslira, server):
    server.script(
        STARTED, shown(RUN), NOT_MODIFIED, shown(COMPLETED, '"5"'), http(200, ANALYSIS), http(500, {})
    )

    answer = await oslira("analyze", "@Slow.Kitchen", "--type", "deep", "--fresh", *FOR_BUSINESS)

    assert answer.exit_code == 0
    assert server.asked[0].json == {
        "username": "slow.kitchen",
        "type": "deep",
        "business_profile_id": BUSINESS_ID,
        "is_fresh": True,
    }
    assert server.asked[2].headers["if-none-match"] == '"4"'
    assert [asked.path.partition("?")[0] for asked in server.asked] == [
        "/v1/analyses",
        *[f"/v1/runs/{RUN_ID}"] * 3,
        f"/v1/analyses/{RUN_ID}",
    ]
    for said in (
        "72 of 100, warm",
        "provider: simulator; models: openai/gpt-5",
        "A cook with a loyal crowd.",
        "+ Cooks by season. (p1)",
        "- Sells a box already [/x][31m.",
        "p1: https://instagram.com/p/1",
        "14 of 18",
        "78 at 80 %",
        "Email: A box",
        "Your soup for eight!",
        "taste ours?",
        "Warm and steady.",
        "relationship first",
        "5 credits charged. It was delivered.",
    ):
        assert said in answer.stdout
    assert "\x1b" not in answer.stdout
    assert "Completed" in answer.stderr


async def test_json_output_contains_only_the_document(oslira, server):
    server.script(STARTED, shown(COMPLETED), http(200, ANALYSIS))

    answer = await oslira("analyze", "slow.kitchen", "--json", *FOR_BUSINESS)

    assert (answer.exit_code, json.loads(answer.stdout)) == (0, ANALYSIS)


async def test_failure_shows_the_reason_and_the_returned_credits(oslira, server):
    server.script(STARTED, shown(FAILED), http(500, {}))

    answer = await oslira("analyze", "slow.kitchen", *FOR_BUSINESS)

    assert answer.exit_code == 1
    assert "failed (private). @slow.kitchen is private. Nothing charged, 5 credits returned." in answer.stderr
    assert "There was nothing to analyse." in answer.stderr
    assert answer.stdout == ""


async def test_a_cancelled_run_exits_as_an_interrupted_program_does(oslira, server):
    server.script(STARTED, shown(CANCELLED), http(500, {}))

    answer = await oslira("analyze", "slow.kitchen", *FOR_BUSINESS)

    assert answer.exit_code == 130
    assert "2 credits charged, 3 credits returned. Models were at work." in answer.stderr


async def test_ctrl_c_without_a_terminal_cancels_the_run(server, tmp_path):
    server.script(STARTED, shown(RUN), stall, http(200, RUN), shown(CANCELLED, '"5"'))
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "core.cli.main",
            "analyze",
            "slow.kitchen",
            "--url",
            server.url,
            *FOR_BUSINESS,
        ),
        env={
            **os.environ,
            "PYTHONPATH": str(PROJECT / "src"),
            "OSLIRA_DATA_DIR": str(tmp_path),
            "OSLIRA_TOKEN": "osl_live_x",
        },
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    await until(lambda: len(server.asked) == 3)

    process.send_signal(signal.SIGINT)
    _, said = await process.communicate()

    assert process.returncode == 130
    assert server.asked[3].path == f"/v1/runs/{RUN_ID}/cancel"
    assert b"2 credits charged, 3 credits returned" in said


async def test_problem_is_shown_as_a_sentence_and_exits_1(oslira, server):
    server.script(problem(402, "insufficient_credits", "This needs 5 credits; 1 is available."))

    answer = await oslira("analyze", "slow.kitchen", *FOR_BUSINESS)

    assert answer.exit_code == 1
    assert answer.stderr == "Error: This needs 5 credits; 1 is available. (insufficient_credits)\n"


async def test_local_environment_provides_the_token_the_business_and_the_margin(locally, server):
    server.script(
        http(200, {"items": [], "next_cursor": None}),
        http(201, BUSINESS),
        STARTED,
        shown(COMPLETED),
        http(200, ANALYSIS),
        http(200, COSTS),
    )

    answer = await locally("analyze", "slow.kitchen", "--email", "ada@example.com")

    assert answer.exit_code == 0
    assert f"Created an example business profile: Seasonal Table (example) ({BUSINESS_ID})" in answer.stderr
    assert server.asked[2].json["business_profile_id"] == BUSINESS_ID
    assert server.asked[-1].path == f"/v1/admin/runs/{RUN_ID}/costs"
    tokens = [asked.headers["authorization"] for asked in server.asked]
    assert len(set(tokens[:-1])) == 1
    assert tokens[-1] != tokens[0]  # the operator's token
    assert "Cost: 0.0151 dollars" in answer.stdout
    assert "margin 4.8349 (99.7 %)" in answer.stdout


async def test_result_is_shown_without_the_margin_if_costs_are_forbidden(locally, server):
    server.script(STARTED, shown(COMPLETED), http(200, ANALYSIS), problem(403, "not_permitted", "No."))

    answer = await locally("analyze", "slow.kitchen", *FOR_BUSINESS)

    assert answer.exit_code == 0
    assert "72 of 100" in answer.stdout
    assert "margin" not in answer.stdout


async def test_only_business_profile_is_used_by_default(oslira, server):
    server.script(
        http(200, {"items": [BUSINESS], "next_cursor": None}), STARTED, shown(COMPLETED), http(200, ANALYSIS)
    )

    answer = await oslira("analyze", "slow.kitchen")

    assert answer.exit_code == 0
    assert server.asked[1].json["business_profile_id"] == BUSINESS_ID


async def test_several_business_profiles_require_a_choice(oslira, server):
    server.script(http(200, {"items": [BUSINESS, {**BUSINESS, "name": "Other"}], "next_cursor": None}))

    answer = await oslira("analyze", "slow.kitchen")

    assert answer.exit_code == 2
    assert f"{BUSINESS_ID}  Seasonal Table" in answer.stderr
    assert len(server.asked) == 1


async def test_example_business_is_not_created_in_a_real_account(oslira, server):
    server.script(http(200, {"items": [], "next_cursor": None}))

    answer = await oslira("analyze", "slow.kitchen")

    assert answer.exit_code == 1
    assert "has no business profile" in answer.stderr
    assert len(server.asked) == 1


QUOTE = example(
    QuoteResponse,
    credits=5,
    credits_available=3,
    is_affordable=False,
    is_cached=True,
    checks={"outcome": "private", "violations": []},
    eta_s=12,
    plan={"name": "free", "runs_at_once": 2, "runs_at_work": 1, "light_per_hour": 10, "bulk_max": 10},
    refund_policy={
        "version": 1,
        "url": "/v1/refund-policy",
        "rules": [
            example(RefundTerm, outcome="completed", percent_charged=100),
            example(RefundTerm, outcome="not_found"),
            example(RefundTerm, outcome="cancelled_saving", percent_charged=50, credits_charged_min=1),
        ],
    },
)


async def test_a_dry_run_says_the_price_and_starts_nothing(oslira, server):
    server.script(http(200, QUOTE), http(500, {}))

    answer = await oslira("analyze", "slow.kitchen", "--dry-run", *FOR_BUSINESS)

    assert answer.exit_code == 0
    assert [asked.path for asked in server.asked] == ["/v1/analyses?dry_run=true"]
    for said in (
        "No run was started",
        "5 credits",
        "3 credits (not enough)",
        "not found",
        "1 of 2 runs",
        "1 credit if cancelled saving",
    ):
        assert said in answer.stdout
    assert "already checked: private, so nothing would be charged" in answer.stdout


@pytest.mark.parametrize("name", ["not a name", "https://example.com/x", ""])
async def test_invalid_username_is_rejected_before_any_request(oslira, server, name):
    server.script(http(500, {}))

    answer = await oslira("analyze", name)

    assert answer.exit_code == 2
    assert "not an Instagram username" in answer.stderr
    assert server.asked == []


async def test_unreachable_server_is_reported_with_instructions(locally):
    port = str(free_port())

    answer = await locally("analyze", "slow.kitchen", OSLIRA_PORT=port)

    assert answer.exit_code == 1
    assert f"No server responds at http://127.0.0.1:{port}." in answer.stderr
    assert "oslira serve" in answer.stderr


async def test_token_and_key_together_are_rejected(oslira):
    answer = await oslira("analyze", "slow.kitchen", "--token", "a", "--key", "b")

    assert answer.exit_code == 2
    assert "--token or --key, not both" in answer.stderr


async def test_option_overrides_the_environment_variable(oslira, server):
    server.script(problem(401, "token_invalid", "Who?"))

    await oslira("analyze", "slow.kitchen", "--key", "osl_live_given", *FOR_BUSINESS)

    assert server.asked[0].headers["authorization"] == "Bearer osl_live_given"


@pytest.mark.parametrize("token", ["two words", "ünicode", "line\nbreak"])
async def test_invalid_token_is_rejected_without_showing_it(oslira, token):
    answer = await oslira("analyze", "slow.kitchen", "--token", token)

    assert answer.exit_code == 2
    assert "not a token or a key" in answer.stderr
    assert token not in answer.output


@pytest.mark.parametrize(
    ("words", "environ"),
    [(("--url", "https://api.example.com"), {}), ((), SERVER)],
    ids=["another machine", "another environment"],
)
async def test_locally_signed_token_is_sent_to_this_machine_only(locally, words, environ):
    answer = await locally("analyze", "slow.kitchen", *words, **environ)

    assert answer.exit_code == 2
    assert "Credentials are missing. Set OSLIRA_TOKEN" in answer.stderr
