"""Secrets never appear in logs, rows or responses (T35)."""

import json

import pytest

from tests.conftest import PROJECT
from tests.system.canaries.net import Canaries, shown

STATUSES = {200, 201, 400, 401, 403, 404, 405, 409, 415, 422, 500, 503}


def test_journey_covers_all_secrets_statuses_and_events(journey):
    events = {json.loads(line)["event"] for line in journey.logged.splitlines()}

    assert len(journey.canaries.secrets) >= 12
    assert {answer.status_code for answer in journey.answers} >= STATUSES
    assert {"unhandled_error", "unavailable"} <= events
    assert len(journey.kept) > 10_000
    assert list(journey.may_show.values()) == ["API key", "API key", "rotated API key"]


def test_no_log_line_contains_a_secret(journey):
    leaks = [(journey.canaries.in_text(line), line) for line in journey.logged.splitlines()]

    assert [leak for leak in leaks if leak[0]] == []


def test_no_row_contains_a_secret(journey):
    assert journey.canaries.in_text(journey.kept) == []


def test_database_server_log_contains_no_secret(journey):
    (log,) = (PROJECT / ".data" / "tests" / "postgres").glob("**/server.log")

    assert journey.canaries.in_text(log.read_text(errors="replace")) == []


def test_only_responses_that_create_a_key_contain_its_secret(journey):
    for number, answer in enumerate(journey.answers):
        text = f"{answer.status_code} {dict(answer.headers)} {answer.text}"
        allowed = {journey.may_show[number]} if number in journey.may_show else set()

        assert set(journey.canaries.in_text(text)) == allowed, (answer.request.url.path, text)


def test_invitation_mail_contains_only_its_own_token(journey):
    (mail,) = journey.mails

    assert journey.canaries.in_text(mail) == ["invitation token"]


SECRET = "0123456789abcdefghijklmnop"


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f'{{"event": "x", "value": "{SECRET[:20]}"}}',
        f"...{SECRET[10:]}",
        shown(SECRET.encode()),
        SECRET.encode().hex(),
        "MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3A=",
    ],
)
def test_search_finds_pieces_and_encodings(text):
    canaries = Canaries()
    canaries.keep("planted", SECRET)

    assert canaries.in_text(text) == ["planted"]
