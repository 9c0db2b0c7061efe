"""Every fault at every call: it completes by another try, or ends in a name; nothing is left running, and
no run is forgotten.
"""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from features.analysis.domain.errors import ProfilesUnavailable
from tests.infrastructure.scraping.apify_server import Fault
from tests.infrastructure.scraping.conftest import KEY
from tests.infrastructure.scraping.test_apify import look, nasa

PASSING = {
    "timeout": lambda: Fault(how="silence"),
    "reset": lambda: Fault(how="reset"),
    "500": lambda: Fault(500, {"error": {"type": "internal-server-error", "message": "canary words"}}),
    "503": lambda: Fault(503, b"<html>upstream</html>"),
    "truncated": lambda: Fault(how="truncated"),
    "wrong schema": lambda: Fault(200, {"data": {"id": 1, "status": "DANCING"}}),
    "not an object": lambda: Fault(200, {"data": [1]}),
    "empty": lambda: Fault(200, b""),
    "html": lambda: Fault(
        200, b"<html>Welcome to the hotel's network</html>", headers={"content-type": "text/html"}
    ),
    "drip": lambda: Fault(how="drip"),
    "200 with error": lambda: Fault(200, {"error": {"type": "internal", "message": "canary words"}}),
}
CALLS = ["start", "wait", "items"]
# What is a document of its own kind is not told from what the actor found.
CONTENT = [("items", "wrong schema"), ("items", "not an object"), ("items", "200 with error")]


def nothing_is_left(server, calls):
    """Every run is over, and every run is in the log, once."""
    recorded = [call.provider_run_id for call in calls if call.provider_run_id]
    return server.running == [] and sorted(recorded) == sorted(server.runs)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", PASSING)
async def test_a_fault_that_passes_costs_one_retry_and_no_second_run(
    profiles, server, calls, sleeps, call, fault
):
    server.script[call] = [PASSING[fault]()]
    server.datasets = [[nasa()], [nasa()]]

    scrape = await look(profiles)

    assert scrape.outcome == "ok"
    assert sleeps in ([], [5.0])  # none where Apify's client asks again by itself
    assert len(server.runs) == (2 if (call, fault) in CONTENT else 1)  # also when its answer was lost
    assert nothing_is_left(server, calls)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", PASSING)
async def test_a_fault_that_stays_ends_in_a_name(make_profiles, server, calls, sleeps, call, fault):
    server.script[call] = [PASSING[fault]() for _ in range(99)]
    for lasting in server.script[call]:
        lasting.does = call != "start"  # else it would be found, and complete
    server.datasets = [[nasa()] for _ in range(9)]

    with pytest.raises(ProfilesUnavailable):
        await look(make_profiles(call_s=0.1))

    assert [delay for delay in sleeps if delay >= 5] == [5.0, 10.0, 20.0]
    assert {one.outcome for one in calls} <= {"unavailable", "timeout"}
    assert nothing_is_left(server, calls)


@pytest.mark.parametrize("fault", PASSING)
async def test_a_start_that_was_not_heard_is_made_again(profiles, server, calls, fault):
    lost = PASSING[fault]()
    lost.does = False
    server.script["start"] = [lost]
    server.datasets = [[nasa()]]

    assert (await look(profiles)).outcome == "ok"
    assert len(server.called("start")) == 2
    assert nothing_is_left(server, calls)


@pytest.mark.parametrize("call", CALLS)
async def test_who_does_not_answer_the_door_is_asked_again(profiles, server, calls, sleeps, call):
    if call == "start":
        await server.stop()
    else:
        server.stop_after = {"wait": "start", "items": "wait"}[call]
    server.datasets = [[nasa()]]
    sleeps.meanwhile = server.start
    scrape = await look(profiles)

    assert scrape.outcome == "ok"
    assert nothing_is_left(server, calls)


async def test_nobody_at_the_door_at_all(profiles, server, calls, sleeps):
    await server.stop()

    with pytest.raises(ProfilesUnavailable):
        await look(profiles)

    assert sleeps == [5.0, 10.0, 20.0]
    assert [(call.outcome, call.cost_nanodollars) for call in calls] == [("unavailable", 0)]


RETRY_AFTER = {
    "none": (None, 5.0),
    "seconds": ("7", 7.0),
    "date": ("in 30 s", 30.0),
    "past date": ("in -30 s", 5.0),
    "huge": ("86400", 60.0),
    "nonsense": ("soon", 5.0),
    "negative": ("-3", 5.0),
    "infinite": ("1e999", 5.0),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("case", RETRY_AFTER)
async def test_retry_after_is_kept_within_reason(profiles, server, calls, sleeps, call, case):
    header, delay_s = RETRY_AFTER[case]
    if case.endswith("date"):
        at = datetime.now(UTC) + timedelta(seconds=float(header.split()[1]))
        header = format_datetime(at, usegmt=True)
    headers = {} if header is None else {"retry-after": header}
    server.script[call] = [
        Fault(429, {"error": {"type": "rate-limit-exceeded"}}, headers=headers, does=False)
    ]
    server.datasets = [[nasa()]]

    assert (await look(profiles)).outcome == "ok"
    assert sleeps == [pytest.approx(delay_s, abs=2)]
    assert nothing_is_left(server, calls)


async def test_who_gives_up_says_when_to_come_back(profiles, server):
    server.script["start"] = [Fault(503, b"", headers={"retry-after": "86400"}, does=False) for _ in range(9)]

    with pytest.raises(ProfilesUnavailable) as refusal:
        await look(profiles)

    assert refusal.value.retry_after_s == 900


async def test_duplicate_items_are_one(profiles, server):
    server.datasets = [[nasa(latestPosts=nasa()["latestPosts"] * 4)] * 3]

    assert len((await look(profiles)).profile.posts) == 3


async def test_a_start_whose_fate_nobody_can_tell_is_written_down_as_an_estimate(profiles, server, calls):
    server.script["start"] = [Fault(how="reset")]
    server.script["list"] = [Fault(500, b"") for _ in range(99)]

    with pytest.raises(ProfilesUnavailable):
        await look(profiles)

    assert len(server.called("start")) == 1  # not again before it is known
    assert [(call.provider_run_id, call.cost_nanodollars, call.is_estimated) for call in calls] == [
        (None, 3_000_000, True)
    ]


async def test_a_run_that_shows_itself_late_is_not_forgotten(profiles, server, calls):
    """Its start was lost, and at first nobody knows of it: another is started, and in the end both end."""
    server.script["start"] = [Fault(how="reset")]
    server.script["list"] = [
        Fault(200, {"data": {"total": 0, "count": 0, "offset": 0, "limit": 9, "desc": True, "items": []}})
    ]
    server.datasets = [[nasa()], [nasa()]]

    assert (await look(profiles)).outcome == "ok"
    assert len(server.runs) == 2
    assert nothing_is_left(server, calls)


async def test_a_run_of_somebody_else_is_not_taken_for_ours(profiles, server, calls):
    server.datasets = [[nasa()], [nasa()], [nasa()]]
    await asyncio.gather(look(profiles), look(profiles))
    server.script["start"] = [Fault(how="reset", does=False)]

    await look(profiles)

    assert sorted(call.provider_run_id for call in calls) == ["run1", "run2", "run3"]


@pytest.mark.parametrize("fault", PASSING)
async def test_an_abort_that_fails_is_tried_once_more(make_profiles, server, calls, fault):
    server.never_ends = True
    spoilt = PASSING[fault]()
    spoilt.does = False
    server.script["abort"] = [spoilt]

    with pytest.raises(ProfilesUnavailable):
        await look(make_profiles(look_s=0.4))

    assert nothing_is_left(server, calls)


async def test_a_run_that_cannot_be_stopped_is_written_down(make_profiles, server, calls):
    server.never_ends = True
    server.script["abort"] = [Fault(500, b"", does=False) for _ in range(9)]

    with pytest.raises(ProfilesUnavailable):
        await look(make_profiles(look_s=0.4))

    assert len(server.called("abort")) == 2
    assert [(call.outcome, call.provider_run_id, call.is_estimated) for call in calls] == [
        ("timeout", "run1", True)
    ]


async def test_neither_the_key_nor_their_words_are_repeated(profiles, server, capsys):
    server.script["start"] = [
        Fault(401, {"error": {"type": "x" * 99, "message": f"canary words {KEY}"}}, does=False)
    ]

    with pytest.raises(ProfilesUnavailable) as refusal:
        await look(profiles)

    said = capsys.readouterr().out + repr(refusal.value) + str(refusal.value) + repr(refusal.value.__cause__)
    assert "apify_refuses_us" in said
    assert "canary" not in said


async def test_the_key_travels_in_the_header_alone(profiles, server):
    server.datasets = [[nasa()]]

    await look(profiles)

    assert {call["headers"]["authorization"] for call in server.calls} == {f"Bearer {KEY}"}
    assert KEY not in json.dumps([call["query"] for call in server.calls])
