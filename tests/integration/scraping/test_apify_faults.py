"""Every fault at every call: the scrape succeeds after a retry or raises a domain error, no run is left
running, and every run is recorded.
"""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from features.analysis.domain.errors import ProfilesUnavailable
from tests.integration.scraping.apify_server import Fault
from tests.integration.scraping.conftest import KEY
from tests.integration.scraping.test_apify import fetch, nasa

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
# A document of a valid kind cannot be distinguished from the actor's items.
CONTENT = [("items", "wrong schema"), ("items", "not an object"), ("items", "200 with error")]


def nothing_is_left(server, calls):
    """Every run with a known id has ended and is recorded once."""
    recorded = [call.provider_run_id for call in calls if call.provider_run_id]
    return not set(recorded) & set(server.running) and len(set(recorded)) == len(recorded)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", PASSING)
async def test_temporary_fault_causes_one_retry(profiles, server, calls, sleeps, call, fault):
    server.script[call] = [PASSING[fault]()]
    server.datasets = [[nasa()], [nasa()]]

    scrape = await fetch(profiles)

    assert scrape.outcome == "ok"
    assert sleeps in ([], [5.0])  # empty when Apify's client repeats the request itself
    assert len(server.runs) == (2 if call == "start" or (call, fault) in CONTENT else 1)
    assert nothing_is_left(server, calls)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fault", PASSING)
async def test_permanent_fault_raises_profiles_unavailable(make_profiles, server, calls, sleeps, call, fault):
    server.script[call] = [PASSING[fault]() for _ in range(99)]
    for lasting in server.script[call]:
        lasting.does = call != "start"
    server.datasets = [[nasa()] for _ in range(9)]

    with pytest.raises(ProfilesUnavailable):
        await fetch(make_profiles(call_s=0.1))

    assert [delay for delay in sleeps if delay >= 5] == [5.0, 10.0, 20.0]
    assert {one.outcome for one in calls} <= {"unavailable", "timeout"}
    assert nothing_is_left(server, calls)


@pytest.mark.parametrize("fault", PASSING)
async def test_start_that_was_not_executed_is_repeated(profiles, server, calls, fault):
    lost = PASSING[fault]()
    lost.does = False
    server.script["start"] = [lost]
    server.datasets = [[nasa()]]

    assert (await fetch(profiles)).outcome == "ok"
    assert len(server.called("start")) == 2
    assert nothing_is_left(server, calls)


@pytest.mark.parametrize("call", CALLS)
async def test_refused_connection_is_retried(profiles, server, calls, sleeps, call):
    if call == "start":
        await server.stop()
    else:
        server.stop_after = {"wait": "start", "items": "wait"}[call]
    server.datasets = [[nasa()]]
    sleeps.meanwhile = server.start
    scrape = await fetch(profiles)

    assert scrape.outcome == "ok"
    assert nothing_is_left(server, calls)


async def test_unreachable_server_raises_profiles_unavailable(profiles, server, calls, sleeps):
    await server.stop()

    with pytest.raises(ProfilesUnavailable):
        await fetch(profiles)

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
async def test_retry_after_is_respected_within_limits(profiles, server, calls, sleeps, call, case):
    header, delay_s = RETRY_AFTER[case]
    if case.endswith("date"):
        at = datetime.now(UTC) + timedelta(seconds=float(header.split()[1]))
        header = format_datetime(at, usegmt=True)
    headers = {} if header is None else {"retry-after": header}
    server.script[call] = [
        Fault(429, {"error": {"type": "rate-limit-exceeded"}}, headers=headers, does=False)
    ]
    server.datasets = [[nasa()]]

    assert (await fetch(profiles)).outcome == "ok"
    assert sleeps == [pytest.approx(delay_s, abs=2)]
    assert nothing_is_left(server, calls)


async def test_failed_scrape_has_a_capped_retry_after(profiles, server):
    server.script["start"] = [Fault(503, b"", headers={"retry-after": "86400"}, does=False) for _ in range(9)]

    with pytest.raises(ProfilesUnavailable) as refusal:
        await fetch(profiles)

    assert refusal.value.retry_after_s == 900


async def test_duplicate_items_are_merged(profiles, server):
    server.datasets = [[nasa(latestPosts=nasa()["latestPosts"] * 4)] * 3]

    assert len((await fetch(profiles)).profile.posts) == 3


async def test_start_with_unknown_result_is_recorded_as_an_estimate_and_repeated(profiles, server, calls):
    server.script["start"] = [Fault(how="reset")]
    server.datasets = [[nasa()], [nasa()]]

    assert (await fetch(profiles)).outcome == "ok"
    assert [(call.outcome, call.provider_run_id, call.cost_nanodollars) for call in calls] == [
        ("unavailable", None, 3_000_000),
        ("ok", "run2", 12_300_000),
    ]
    assert [call.is_estimated for call in calls] == [True, False]


@pytest.mark.parametrize("fault", PASSING)
async def test_failed_abort_is_retried_once(make_profiles, server, calls, fault):
    server.never_ends = True
    spoilt = PASSING[fault]()
    spoilt.does = False
    server.script["abort"] = [spoilt]

    with pytest.raises(ProfilesUnavailable):
        await fetch(make_profiles(scrape_s=0.4))

    assert nothing_is_left(server, calls)


async def test_run_that_cannot_be_aborted_is_recorded(make_profiles, server, calls):
    server.never_ends = True
    server.script["abort"] = [Fault(500, b"", does=False) for _ in range(9)]

    with pytest.raises(ProfilesUnavailable):
        await fetch(make_profiles(scrape_s=0.4))

    assert len(server.called("abort")) == 2
    assert [(call.outcome, call.provider_run_id, call.is_estimated) for call in calls] == [
        ("timeout", "run1", True)
    ]


async def test_errors_contain_neither_the_key_nor_apifys_text(profiles, server, capsys):
    server.script["start"] = [
        Fault(401, {"error": {"type": "x" * 99, "message": f"canary words {KEY}"}}, does=False)
    ]

    with pytest.raises(ProfilesUnavailable) as refusal:
        await fetch(profiles)

    said = capsys.readouterr().out + repr(refusal.value) + str(refusal.value) + repr(refusal.value.__cause__)
    assert "apify_rejected_us" in said
    assert "canary" not in said


async def test_key_is_sent_only_in_the_header(profiles, server):
    server.datasets = [[nasa()]]

    await fetch(profiles)

    assert {call["headers"]["authorization"] for call in server.calls} == {f"Bearer {KEY}"}
    assert KEY not in json.dumps([call["query"] for call in server.calls])
