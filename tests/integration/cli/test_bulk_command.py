"""Tests of oslira bulk and oslira leads."""

import csv
import json

import pytest

from features.analysis.controllers.bulk_schemas import BulkItemResponse, BulkStartedResponse
from features.leads.domain.leads import Lead
from tests.integration.cli.responses import BUSINESS_ID, CANCELLED, COMPLETED, RUN, RUN_ID, example, shown
from tests.support.scripted_server import http

FOR_BUSINESS = ("--business", BUSINESS_ID)
SUBJECT = {"kind": "bulk_analysis", "subject": {"type": "light", "count": 2}, "credits_held": 2}
AT_WORK = {**RUN, **SUBJECT, "progress": 50, "current_step": "batch 1 of 1"}
PAUSED = {**AT_WORK, "status": "paused", "current_step": "waiting_for_credits"}
ENDED = {**COMPLETED, **SUBJECT, "credits_charged": 1, "current_step": "batch 1 of 1", "refund": None}
QUOTE = http(
    200,
    {
        "accepted_count": 2,
        "rejected": [{"position": 2, "username": "x", "code": "c", "reason": "Too odd."}],
        "credits_estimate": 2,
        "credits_available": 1,
    },
)
STARTED = http(202, example(BulkStartedResponse, run_id=RUN_ID))
ITEMS = http(
    200,
    {
        "items": [
            example(BulkItemResponse, username="ada", status="completed", outcome="completed"),
            example(BulkItemResponse, username="bob", status="failed", outcome="private"),
        ],
        "next_cursor": None,
    },
)
LEAD = example(
    Lead,
    username="ada",
    full_name="=cmd()",
    followers=12_000,
    tier="hot",
    score=91,
    niche="food [/x]",
)
LEADS = http(
    200, {"items": [{**LEAD, "username": "other.person", "tier": "cold"}, LEAD], "next_cursor": None}
)


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("name,username\nAda,@ada\nCara,not a name\nBob,bob\n")
    return str(path)


async def test_every_profile_in_a_file_is_analysed_and_counted(oslira, server, people, tmp_path):
    server.script(QUOTE, STARTED, shown(AT_WORK), shown(PAUSED, '"5"'), shown(ENDED, '"6"'), ITEMS, LEADS)

    answer = await oslira(
        "bulk", people, "--type", "light", "--yes", "--output", str(tmp_path / "out.csv"), *FOR_BUSINESS
    )

    assert answer.exit_code == 0
    assert server.asked[0].path == "/v1/analyses/bulk?dry_run=true"
    assert server.asked[1].json == {
        "usernames": ["ada", "bob"],
        "type": "light",
        "business_profile_id": BUSINESS_ID,
        "is_fresh": False,
    }
    for said in (
        "not a name",
        "Too odd.",
        "column username",
        "The first usernames: @ada, @bob.",
        "2 profiles, at most 2 credits; 1 available.",
        "not enough credits",
        "2/2",
    ):
        assert said in answer.stderr
    assert "The run pauses" in answer.stderr
    lines = [line.replace("│", " ").split() for line in answer.stdout.splitlines()]
    assert ["hot", "1", "charged"] in lines
    assert ["cold", "0", "charged"] in lines  # leads of other runs are not counted
    assert ["private", "1"] in [line[:2] for line in lines]
    assert "1 credit charged, 1 credit returned." in answer.stdout
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [(row["username"], row["outcome"], row["tier"]) for row in rows] == [
        ("ada", "completed", "hot"),
        ("bob", "private", ""),
    ]
    assert rows[0]["full_name"] == "'=cmd()"


@pytest.mark.parametrize("typed", ["n\n", ""], ids=["no", "nothing"])
async def test_bulk_does_not_start_without_confirmation(oslira, server, people, typed):
    server.script(QUOTE, http(500, {}))

    answer = await oslira("bulk", people, *FOR_BUSINESS, given=typed)

    assert answer.exit_code == 1
    assert len(server.asked) == 1


async def test_confirmed_bulk_that_is_cancelled_shows_its_results(oslira, server, people):
    server.script(QUOTE, STARTED, shown({**CANCELLED, **SUBJECT}), ITEMS, LEADS)

    answer = await oslira("bulk", people, *FOR_BUSINESS, given="y\n")

    assert answer.exit_code == 130
    assert "ada" in answer.stdout


async def test_file_without_usernames_sends_nothing(oslira, server, tmp_path):
    (tmp_path / "none.csv").write_text("username\nnot a name\n")
    server.script(http(500, {}))

    answer = await oslira("bulk", str(tmp_path / "none.csv"), "--yes")

    assert answer.exit_code == 1
    assert "no valid username" in answer.stderr
    assert server.asked == []


@pytest.mark.parametrize("column", [(), ("--column", "Town")])
async def test_a_file_without_a_fitting_column_exits_2_and_sends_nothing(oslira, server, column):
    server.script(http(500, {}))

    answer = await oslira("bulk", "-", "--yes", *column, given="Name,City\nada,bern\n")

    assert answer.exit_code == 2
    assert "Name, City" in answer.stderr
    assert server.asked == []


async def test_three_usernames_of_the_named_column_are_shown_before_the_question(oslira, server):
    server.script(QUOTE, http(500, {}))

    answer = await oslira(
        *("bulk", "-", "--column", "IG", *FOR_BUSINESS), given="Instagram,IG\nx,ada\nx,bob\nx,cy\nx,dee\n"
    )

    assert answer.exit_code == 1
    assert "The first usernames: @ada, @bob, @cy.\n" in answer.stderr
    assert answer.stderr.index("@cy") < answer.stderr.index("Start?")


async def test_usernames_can_be_read_from_stdin(oslira, server):
    server.script(QUOTE, STARTED, shown(ENDED), ITEMS, LEADS)

    answer = await oslira("bulk", "-", "--yes", *FOR_BUSINESS, given="ada\nbob\n")

    assert answer.exit_code == 0
    assert server.asked[1].json["usernames"] == ["ada", "bob"]


async def test_leads_are_a_table(oslira, server):
    server.script(http(200, {"items": [LEAD], "next_cursor": None}))

    answer = await oslira("leads", "--tier", "hot")

    assert answer.exit_code == 0
    assert server.asked[0].path == "/v1/leads?tier=hot&limit=20"
    for said in ("ada", "hot", "91", "food [/x]", "12,000"):
        assert said in answer.stdout


async def test_empty_list_of_leads_is_shown_as_a_sentence(oslira, server):
    server.script(http(200, {"items": [], "next_cursor": None}))

    assert "No leads" in (await oslira("leads")).stdout


async def test_leads_as_json_are_one_object_a_line(oslira, server):
    server.script(http(200, {"items": [LEAD], "next_cursor": None}))

    assert json.loads((await oslira("leads", "--json")).stdout) == LEAD


async def test_leads_csv_is_written_as_the_server_sends_it(oslira, server, tmp_path):
    server.script(http(200, b"username\r\nada\r\n", content_type="text/csv"))

    answer = await oslira("leads", "--tier", "hot", "--csv", str(tmp_path / "leads.csv"))

    assert answer.exit_code == 0
    assert server.asked[0].path == "/v1/leads/export?tier=hot"
    assert (tmp_path / "leads.csv").read_bytes() == b"username\r\nada\r\n"
