"""What nobody expected is told, and nothing else; without a word about anybody."""

import asyncio
import contextlib
import io
import logging
import subprocess
import sys

import pytest
import structlog

from infrastructure.monitoring.logs import configure_logs
from infrastructure.monitoring.sentry import sentry
from shared.errors import Unavailable
from shared.middleware.request_id import current_request_id
from tests.conftest import PROJECT
from tests.infrastructure.sentry_server import sentry_server

TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.canary-canary_canary"


@pytest.fixture
def server():
    with sentry_server() as server:
        yield server


@pytest.fixture
def log(monkeypatch):
    """A logger of the real configuration, which is put back afterwards."""
    root, before = logging.getLogger(), structlog.get_config()
    level = root.level
    monkeypatch.setattr(root, "handlers", [])
    with contextlib.redirect_stderr(io.StringIO()):
        configure_logs(as_json=True)
    yield structlog.get_logger("test")
    structlog.configure(**before)
    root.setLevel(level)


@pytest.fixture
async def told(server, log):
    """A function: what arrives of what is logged meanwhile."""

    async def told(work):
        async with sentry(server.dsn, environment="staging", release="1.2.3"):
            work(log)
        return server.events

    return told


class Broken(Unavailable):
    code = "broken"


def fail(error):
    try:
        raise error
    except type(error) as caught:
        return caught


async def test_an_unexpected_error_arrives_once_with_its_kind_and_place(told):
    (event,) = await told(lambda log: log.error("unhandled_error", exc_info=fail(KeyError("x"))))

    (error,) = event["exception"]["values"]
    assert (error["type"], error["value"]) == ("KeyError", "'x'")
    assert error["stacktrace"]["frames"][-1]["function"] == "fail"
    assert (event["level"], event["environment"], event["release"]) == ("error", "staging", "1.2.3")
    assert event["logentry"]["message"] == "unhandled_error"


async def test_a_critical_event_arrives_with_its_facts(told):
    token = current_request_id.set("request-1")
    (event,) = await told(lambda log: log.critical("not_written", what="model calls", count=3))
    current_request_id.reset(token)

    assert (event["level"], event["logentry"]["message"]) == ("fatal", "not_written")
    assert event["extra"] == {"what": "model calls", "count": 3}
    assert event["tags"] == {"request_id": "request-1"}


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
async def test_other_events_do_not_arrive(told, level):
    assert await told(lambda log: getattr(log, level)("something", count=3)) == []


async def test_a_warning_about_an_error_does_not_arrive(told):
    assert await told(lambda log: log.warning("tried_again", exc_info=fail(OSError()))) == []


@pytest.mark.parametrize("how", ["error", "tuple"])
async def test_a_refusal_does_not_arrive_however_it_is_logged(told, how):
    def work(log):
        refusal = fail(Broken())
        forms = {"error": refusal, "tuple": (Broken, refusal, None)}
        log.error("refused", exc_info=forms[how])

    assert await told(work) == []


async def test_the_error_under_way_is_the_one_that_is_told(told):
    def refuse(_):
        raise Broken

    def work(log):
        for make in (int, refuse):
            try:
                make("x")
            except (ValueError, Broken):
                log.exception("caught")

    assert [event["exception"]["values"][0]["type"] for event in await told(work)] == ["ValueError"]


async def test_what_a_library_logs_arrives_too(told):
    def work(_):
        logging.getLogger("library").error("It broke", exc_info=fail(OSError("x")))
        logging.getLogger("library").error("It complains")
        logging.getLogger("library").critical("It is over")

    assert [event["logentry"]["message"] for event in await told(work)] == ["It broke", "It is over"]


async def test_secrets_and_people_are_blotted_out(told, server):
    def work(log):
        password = "canary-local"  # noqa: F841  which a debugger would see
        text = (
            f"postgresql://u:canary@h/d {TOKEN} sk-ant-api03-canarycanary ada.canary@example.com"
            "\nDETAIL: Key (name)=(canary)"
        )
        error = fail(ValueError(text))
        error.__cause__ = fail(RuntimeError(text))
        log.critical("over", exc_info=error, address="redis://:canary@cache", nested={"key": [TOKEN]})

    (event,) = await told(work)

    assert len(event["exception"]["values"]) == 2
    assert "canary" not in str(server.bodies)
    assert not {"request", "user", "server_name", "breadcrumbs", "modules"} & set(event)
    assert "vars" not in str(event)


async def test_a_server_that_is_away_harms_nobody(log):
    async with asyncio.timeout(10):
        async with sentry("http://key@127.0.0.1:1/42", environment="local", release="1"):
            log.critical("over")


async def test_an_event_that_cannot_be_told_harms_nobody(told):
    class Hostile:
        def __repr__(self):
            raise OSError

    def work(log):
        with contextlib.suppress(OSError):  # the log's own trouble, with or without Sentry
            log.critical("over", value=Hostile())
        log.critical("still here")

    assert "still here" in [event["logentry"]["message"] for event in await told(work)]


async def test_afterwards_nothing_is_told_any_more(told, log, server):
    await told(lambda _: None)

    log.critical("too late")

    assert server.bodies == []


def test_without_an_address_the_client_is_never_imported():
    program = """
import asyncio, sys
from core.wiring.application import build
from infrastructure.monitoring.sentry import sentry

async def main():
    async with sentry("", environment="local", release="1"):
        assert "sentry_sdk" not in sys.modules

asyncio.run(main())
"""
    subprocess.run(
        [sys.executable, "-c", program], check=True, env={"PYTHONPATH": str(PROJECT / "src")}, timeout=60
    )
