"""Reports to Sentry: only unexpected errors, and no personal data."""

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
from tests.support.sentry_server import sentry_server

TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.canary-canary_canary"


@pytest.fixture
def server():
    with sentry_server() as server:
        yield server


@pytest.fixture
def log(monkeypatch):
    """A logger with the real configuration, which is restored afterwards."""
    root, before = logging.getLogger(), structlog.get_config()
    level = root.level
    monkeypatch.setattr(root, "handlers", [])
    with contextlib.redirect_stderr(io.StringIO()):
        configure_logs(as_json=True)
    yield structlog.get_logger("test")
    structlog.configure(**before)
    root.setLevel(level)


@pytest.fixture
async def sent_events(server, log):
    """Returns a function that returns the events sent while ``work`` logs."""

    async def sent_events(work):
        async with sentry(server.dsn, environment="staging", release="1.2.3"):
            work(log)
        return server.events

    return sent_events


class Broken(Unavailable):
    code = "broken"


def fail(error):
    try:
        raise error
    except type(error) as caught:
        return caught


async def test_unexpected_error_is_sent_once_with_type_and_frame(sent_events):
    (event,) = await sent_events(lambda log: log.error("unhandled_error", exc_info=fail(KeyError("x"))))

    (error,) = event["exception"]["values"]
    assert (error["type"], error["value"]) == ("KeyError", "'x'")
    assert error["stacktrace"]["frames"][-1]["function"] == "fail"
    assert (event["level"], event["environment"], event["release"]) == ("error", "staging", "1.2.3")
    assert event["logentry"]["message"] == "unhandled_error"


async def test_critical_event_is_sent_with_its_values(sent_events):
    token = current_request_id.set("request-1")
    (event,) = await sent_events(lambda log: log.critical("not_written", what="model calls", count=3))
    current_request_id.reset(token)

    assert (event["level"], event["logentry"]["message"]) == ("fatal", "not_written")
    assert event["extra"] == {"what": "model calls", "count": 3}
    assert event["tags"] == {"request_id": "request-1"}


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
async def test_other_events_are_not_sent(sent_events, level):
    assert await sent_events(lambda log: getattr(log, level)("something", count=3)) == []


async def test_warning_with_an_error_is_not_sent(sent_events):
    assert await sent_events(lambda log: log.warning("tried_again", exc_info=fail(OSError()))) == []


@pytest.mark.parametrize("how", ["error", "tuple"])
async def test_domain_error_is_not_sent(sent_events, how):
    def work(log):
        refusal = fail(Broken())
        forms = {"error": refusal, "tuple": (Broken, refusal, None)}
        log.error("refused", exc_info=forms[how])

    assert await sent_events(work) == []


async def test_current_exception_is_sent(sent_events):
    def refuse(_):
        raise Broken

    def work(log):
        for make in (int, refuse):
            try:
                make("x")
            except (ValueError, Broken):
                log.exception("caught")

    assert [event["exception"]["values"][0]["type"] for event in await sent_events(work)] == ["ValueError"]


async def test_errors_logged_by_libraries_are_sent(sent_events):
    def work(_):
        logging.getLogger("library").error("It broke", exc_info=fail(OSError("x")))
        logging.getLogger("library").error("It complains")
        logging.getLogger("library").critical("It is over")

    assert [event["logentry"]["message"] for event in await sent_events(work)] == ["It broke", "It is over"]


async def test_secrets_and_personal_data_are_redacted(sent_events, server):
    def work(log):
        password = "canary-local"  # noqa: F841  a local variable that must not be sent
        text = (
            f"postgresql://u:canary@h/d {TOKEN} sk-ant-api03-canarycanary ada.canary@example.com"
            "\nDETAIL: Key (name)=(canary)"
        )
        error = fail(ValueError(text))
        error.__cause__ = fail(RuntimeError(text))
        log.critical("over", exc_info=error, address="redis://:canary@cache", nested={"key": [TOKEN]})

    (event,) = await sent_events(work)

    assert len(event["exception"]["values"]) == 2
    assert "canary" not in str(server.bodies)
    assert not {"request", "user", "server_name", "breadcrumbs", "modules"} & set(event)
    assert "vars" not in str(event)


async def test_unreachable_server_does_not_break_logging(log):
    async with asyncio.timeout(10):
        async with sentry("http://key@127.0.0.1:1/42", environment="local", release="1"):
            log.critical("over")


async def test_event_that_cannot_be_serialized_does_not_break_logging(sent_events):
    class Hostile:
        def __repr__(self):
            raise OSError

    def work(log):
        with contextlib.suppress(OSError):  # raised by the log itself, with or without Sentry
            log.critical("over", value=Hostile())
        log.critical("still here")

    assert "still here" in [event["logentry"]["message"] for event in await sent_events(work)]


async def test_no_events_are_sent_after_the_context(sent_events, log, server):
    await sent_events(lambda _: None)

    log.critical("too late")

    assert server.bodies == []


def test_sdk_is_not_imported_without_a_dsn():
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
