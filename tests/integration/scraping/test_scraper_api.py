"""Scrapes via ScraperAPI: outcomes, faults, and the secrecy of the key."""

import asyncio
import copy
import json
import logging
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from features.analysis.domain.errors import ProfilesUnavailable
from infrastructure.monitoring.cost_tracker import CostTracker
from infrastructure.provider_endpoint import ProviderEndpoint
from infrastructure.scraping.scraper_api import ScraperApiProfiles
from shared.llm import CostOwner
from tests.integration.scraping.apify_server import WIRE, Fault, _write
from tests.integration.scraping.conftest import now
from tests.support import until

KEY = "0123456789abcdefcanary0123456789"
NATGEO = WIRE["web_profile_info"]["body"]
TEXT = {"content-type": "text/html"}


class Page:
    """One page on real sockets, with scripted faults."""

    def __init__(self):
        self.script = []
        self.body = NATGEO
        self.asked = []
        self.headers = {}
        self._server = None
        self._port = 0
        self._tasks = set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}"

    async def start(self):
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
            self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self):
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.asked.append(head)
            await self._answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(asyncio.current_task())
            writer.close()

    async def _answer(self, writer):
        fault = self.script.pop(0) if self.script else Fault()
        if fault.how == "silence":
            await asyncio.Event().wait()
        if fault.how == "reset":
            writer.transport.abort()
            return
        body = self.body if fault.body is None else fault.body
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {**self.headers, **fault.headers, "connection": "close"}
        await _write(writer, fault.status or 200, raw, headers, fault.how)


@pytest.fixture
async def page():
    page = Page()
    await page.start()
    yield page
    await page.stop()


@pytest.fixture
async def profiles(page, calls, prices, sleeps):
    async def where():
        return ProviderEndpoint(page.url, KEY, is_simulated=True)

    profiles = ScraperApiProfiles(
        where,
        CostTracker(calls, prices),
        now=now,
        response_s=0.8,
        scrape_s=20,
        sleep=sleeps,
        jitter=lambda: 0.0,
    )
    yield profiles
    await profiles.close()


async def fetch(profiles, username="natgeo"):
    return await profiles.fetch(username, posts_max=12, cost_owner=CostOwner())


def natgeo(**changes):
    body = copy.deepcopy(NATGEO)
    body["data"]["user"].update(changes)
    return body


async def test_profile_and_posts_are_parsed(profiles, calls):
    scrape = await fetch(profiles, "NatGeo")

    profile = scrape.profile
    assert (scrape.outcome, scrape.provider, scrape.is_simulated) == ("ok", "scraperapi", True)
    assert (profile.username, profile.id, profile.full_name) == ("natgeo", "787132", "National Geographic")
    assert (profile.followers_count, profile.following_count, profile.posts_count) == (274988953, 193, 31529)
    assert profile.external_urls == ("http://visitstore.bio/natgeo",)
    assert profile.related_usernames == ("natgeotravel",)
    assert [(post.kind, post.likes_count, post.comments_count) for post in profile.posts] == [
        ("video", 35897, 236),
        ("carousel", None, 12),
    ]
    assert profile.posts[0].hashtags == ("EarthMonth", "StepIntoWonder")
    assert profile.posts[0].mentions == ("DisneyPlus",)
    assert profile.posts[0].url == "https://www.instagram.com/p/DWllQsJCPX_/"
    assert [(call.outcome, call.posts_found, call.cost_nanodollars) for call in calls] == [("ok", 2, 490_000)]


async def test_request_contains_the_url_and_headers_of_instagrams_page(profiles, page):
    await fetch(profiles)

    target = page.asked[0].split()[1]
    query = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
    assert query == {
        "api_key": KEY,
        "url": "https://www.instagram.com/api/v1/users/web_profile_info/?username=natgeo",
        "keep_headers": "true",
    }
    assert "x-ig-app-id: 936619743392459" in page.asked[0]


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (natgeo(is_private=True), "private"),
        ({"data": {"user": None}, "status": "ok"}, "not_found"),
        ({"message": "geoblock_required", "status": "fail"}, "restricted"),
        ({"message": "login_required", "status": "fail"}, "restricted"),
    ],
)
async def test_document_determines_the_outcome(profiles, page, calls, sleeps, body, outcome):
    page.body = body

    scrape = await fetch(profiles)

    assert scrape.outcome == outcome
    assert (calls.outcomes, sleeps) == ([outcome], [])
    if outcome == "private":
        assert (scrape.profile.followers_count, scrape.profile.posts) == (274988953, ())


async def test_status_404_means_not_found(profiles, page, calls):
    page.script = [Fault(404, b"<html>Page not found</html>", headers=TEXT)]

    assert (await fetch(profiles)).outcome == "not_found"
    assert [call.cost_nanodollars for call in calls] == [490_000]


FAULTS = {  # each with whether it may be charged
    "timeout": (lambda: Fault(how="silence"), True),
    "reset": (lambda: Fault(how="reset"), True),
    "500": (lambda: Fault(500, b"canary words", headers=TEXT), False),
    "503": (lambda: Fault(503, b""), False),
    "truncated": (lambda: Fault(how="truncated"), True),
    "wrong schema": (lambda: Fault(200, {"data": {"user": [1]}}), True),
    "another profile": (lambda: Fault(200, natgeo(username="nasa")), True),
    "empty": (lambda: Fault(200, b""), True),
    "html": (lambda: Fault(200, b"<html>Login - Instagram</html>", headers=TEXT), True),
    "drip": (lambda: Fault(how="drip"), True),
    "200 with error": (lambda: Fault(200, {"message": "Please wait a few minutes", "status": "fail"}), True),
    "too deep": (lambda: Fault(200, b"[" * 100_000), True),
    "redirect": (lambda: Fault(302, b"", headers={"location": "https://evil.example/"}), False),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_temporary_fault_causes_one_retry(profiles, page, calls, sleeps, name):
    make, may_cost = FAULTS[name]
    page.script = [make()]

    assert (await fetch(profiles)).outcome == "ok"
    assert sleeps == [5.0]
    assert [call.cost_nanodollars for call in calls] == [490_000 if may_cost else 0, 490_000]


@pytest.mark.parametrize("name", FAULTS)
async def test_permanent_fault_raises_profiles_unavailable(profiles, page, calls, sleeps, name):
    page.script = [FAULTS[name][0]() for _ in range(9)]

    with pytest.raises(ProfilesUnavailable):
        await fetch(profiles)

    assert sleeps == [5.0, 10.0, 20.0]
    assert calls.outcomes == ["timeout" if name in ("timeout", "drip") else "unavailable"] * 4


async def test_unreachable_server_costs_nothing(profiles, page, calls, sleeps):
    await page.stop()

    with pytest.raises(ProfilesUnavailable):
        await fetch(profiles)

    assert sleeps == [5.0, 10.0, 20.0]
    assert [(call.cost_nanodollars, call.is_estimated) for call in calls] == [(0, False)] * 4


@pytest.mark.parametrize(
    ("header", "delay_s"), [(None, 5.0), ("7", 7.0), ("date", 30.0), ("86400", 60.0), ("soon", 5.0)]
)
async def test_rate_limit_waits_for_retry_after(profiles, page, calls, sleeps, header, delay_s):
    if header == "date":
        header = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    page.script = [Fault(429, b"", headers={"retry-after": header} if header else {}) for _ in range(6)]

    assert (await fetch(profiles)).outcome == "ok"
    assert sleeps == [pytest.approx(delay_s, abs=2)] * 6
    assert [call.cost_nanodollars for call in calls] == [0] * 6 + [490_000]


@pytest.mark.parametrize("status", [400, 401, 403])
async def test_failure_that_needs_an_operator_is_not_retried(profiles, page, sleeps, capsys, status):
    page.script = [Fault(status, b"canary words")]

    with pytest.raises(ProfilesUnavailable):
        await fetch(profiles)

    assert sleeps == []
    assert "scraperapi_rejected_us" in capsys.readouterr().out


async def test_body_size_is_limited(profiles, page):
    page.script = [Fault(200, b" " * (9 * 1024 * 1024)) for _ in range(4)]

    with pytest.raises(ProfilesUnavailable):
        await fetch(profiles)


async def test_cost_is_the_reported_number_of_credits(profiles, page, calls):
    page.headers = {"sa-credit-cost": "30"}

    await fetch(profiles)

    assert [(call.cost_nanodollars, call.is_estimated) for call in calls] == [(14_700_000, False)]


async def test_cancelled_request_is_recorded(profiles, page, calls):
    page.script = [Fault(how="silence")]
    task = asyncio.create_task(fetch(profiles))
    await until(lambda: page.asked)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert task.cancelled()
    assert [(call.outcome, call.cost_nanodollars, call.is_estimated) for call in calls] == [
        ("cancelled", 490_000, True)
    ]


async def test_more_than_twelve_posts_raise_assertion_error(profiles):
    with pytest.raises(AssertionError):
        await profiles.fetch("natgeo", posts_max=50, cost_owner=CostOwner())


async def test_logs_and_errors_do_not_contain_the_key(profiles, page, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    said = []
    for name in ("reset", "500", "html", "redirect"):
        page.script = [FAULTS[name][0]() for _ in range(4)]
        with pytest.raises(ProfilesUnavailable) as refusal:
            await fetch(profiles)
        error = refusal.value
        said.append(f"{error!r} {error} {error.__cause__!r} {error.__context__!r}")
    await fetch(profiles)

    everything = "".join(said) + caplog.text + "".join(capsys.readouterr())
    assert "scrape_retried" in everything
    assert "canary" not in everything
