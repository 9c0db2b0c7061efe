"""Tests of `oslira api METHOD PATH`, and of the renderer that shows any response."""

import json

import pytest

from core.cli.output.renderer import field_text, title_of
from tests.integration.cli.responses import problem
from tests.support.scripted_server import http

ENDPOINT = {"id": "e1", "url": "https://hooks.example/\u001b[31mx", "types": ["a", "b"], "is_active": True}


async def test_fields_are_sent_with_their_json_type(oslira, server):
    server.script(http(201, ENDPOINT))

    answer = await oslira(
        *(
            "api",
            "post",
            "/v1/x",
            "count=5",
            "is_fresh=true",
            "name=a b=c",
            'code="7"',
            'tags=["x"]',
            "none=null",
        )
    )

    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/v1/x")
    assert asked.json == {
        "count": 5,
        "is_fresh": True,
        "name": "a b=c",
        "code": "7",
        "tags": ["x"],
        "none": None,
    }
    assert "idempotency-key" in asked.headers
    assert answer.exit_code == 0


@pytest.mark.parametrize("words", [("api", "PATCH", "/v1/x", "@-"), ("api", "PUT", "/v1/x", "@{file}")])
async def test_body_is_read_from_stdin_or_a_file(oslira, server, tmp_path, words):
    (tmp_path / "body.json").write_text('{"a": [1]}')
    server.script(http(200, ENDPOINT))

    answer = await oslira(*(word.format(file=tmp_path / "body.json") for word in words), given='{"a": [1]}')

    assert (answer.exit_code, server.asked[0].json) == (0, {"a": [1]})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("GET", "/v1/x", "a=b"), "Use -q NAME=VALUE"),
        (("POST", "/v1/x", "a"), "'a' is not NAME=VALUE"),
        (("POST", "/v1/x", "@-"), "The body is not JSON"),
        (("GET", "v1/x"), "A path starts with /"),
        (("FETCH", "/v1/x"), "No such command"),
    ],
)
async def test_invalid_request_is_rejected_before_it_is_sent(oslira, server, words, message):
    server.script(http(500, {}))

    answer = await oslira("api", *words, given="{")

    assert (answer.exit_code, server.asked) == (2, [])
    assert message in answer.stderr


async def test_page_is_a_table_with_a_hint_to_the_next_page(oslira, server):
    server.script(http(200, {"items": [ENDPOINT], "next_cursor": "70\u001b31", "is_complete": False}))

    answer = await oslira("api", "GET", "/v1/x", "-q", "limit=1", "--query", "status=dead")

    assert server.asked[0].path == "/v1/x?limit=1&status=dead"
    for text in ("e1", "a, b", "yes", "active", "complete"):
        assert text in answer.stdout
    assert "\u001b" not in answer.output
    assert "Next page: add -q cursor=7031" in answer.stderr


async def test_wide_page_shows_the_fields_that_fit_and_names_the_others(oslira, server):
    item = {"id": "e1", **{f"field_{number}": "x" * 50 for number in range(9)}, "empty": None}
    server.script(http(200, {"items": [item], "next_cursor": None}))

    answer = await oslira("api", "GET", "/v1/x")

    assert "field 0" in answer.stdout
    assert "More fields with --json: field_" in answer.stderr
    assert "empty" not in answer.output


async def test_object_is_a_panel_with_its_nested_objects(oslira, server):
    server.script(
        http(200, {"price_cents": 1_500, "currency": "eur", "plan": {"name": "pro"}, "log": [{"n": 1}]})
    )

    answer = await oslira("api", "GET", "/v1/x")

    for text in ("price", "15.00 EUR", "pro", "log"):
        assert text in answer.stdout


async def test_json_option_prints_the_document(oslira, server):
    server.script(http(200, {"items": [ENDPOINT], "next_cursor": None}))

    answer = await oslira("api", "GET", "/v1/x", "--json")

    assert json.loads(answer.stdout) == {"items": [ENDPOINT], "next_cursor": None}


async def test_other_formats_are_printed_as_they_are(oslira, server):
    server.script(http(200, b"a,b\r\n", content_type="text/csv"))

    assert (await oslira("api", "GET", "/v1/x.csv")).stdout.splitlines() == ["a,b"]


async def test_empty_response_shows_the_status(oslira, server):
    server.script(http(204))

    answer = await oslira("api", "DELETE", "/v1/x", "-H", 'If-Match="3"')

    assert server.asked[0].headers["if-match"] == '"3"'
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert "204" in answer.stderr


async def test_problem_is_an_error_with_exit_code_1(oslira, server):
    server.script(problem(404, "lead_not_found", "There is no such lead."))

    answer = await oslira("api", "GET", "/v1/leads/x")

    assert answer.exit_code == 1
    assert answer.stderr == "Error: There is no such lead. (lead_not_found)\n"


async def test_administration_routes_use_the_local_operator(locally, server):
    server.script(http(200, {"items": []}))

    await locally("api", "GET", "/v1/admin/cron")
    await locally("api", "GET", "/v1/runs")

    assert len({asked.headers["authorization"] for asked in server.asked}) == 2


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("price_cents", 123_456, "1,234.56 USD"),
        ("credits_delta", 5, "+5"),
        ("duration_ms", 1_200.4, "1,200 ms"),
        ("eta_s", 12, "12 s"),
        ("hit_percent", 30, "30.0 %"),
        ("cost_dollars", 0.0151, "0.015100 USD"),
        ("score", 1_000, "1,000"),
        ("share", 0.25, "0.25"),
        ("is_paid", False, "no"),
        ("ended_at", None, ""),
        ("created_at", "2026-11-01T03:15:00.011Z", "2026-11-01 03:15:00"),
        ("counts", {"credits_expired": 340}, "credits expired: 340"),
    ],
)
def test_field_name_decides_the_format(name, value, text):
    assert field_text(name, value) == text


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("created_at", "created"),
        ("is_cached", "cached"),
        ("last_run.status", "last run status"),
        ("id", "id"),
    ],
)
def test_title_omits_the_unit(name, title):
    assert title_of(name) == title
