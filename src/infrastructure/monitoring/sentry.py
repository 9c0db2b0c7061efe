"""Reporting of unexpected errors to Sentry. Domain errors are not reported: they are recorded with the
requests (``traffic.requests.code``).
"""

import asyncio
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

from structlog.typing import EventDict

from infrastructure.monitoring.logs import listen, redact, redacted
from shared.errors import DomainError

FLUSH_S = 3.0
LOUD = frozenset({"error", "critical"})
# All other fields are dropped: request, user, host name.
ALLOWED_FIELDS = frozenset(
    {
        *("event_id", "timestamp", "level", "logger", "platform", "environment", "release", "sdk"),
        *("logentry", "exception", "tags", "extra"),
    }
)
ALLOWED_FRAME_FIELDS = frozenset(
    {"filename", "function", "module", "lineno", "abs_path", "context_line", "in_app"}
)
REPORTED_FIELDS = frozenset(
    {*("event", "level", "logger", "exc_info", "request_id", "timestamp"), *("_record", "_from_structlog")}
)
Parts = tuple[object, ...]
_EMAIL = re.compile(r"[^\s@<>()'\"=]+@[^\s@<>()'\"=]+\.\w+")


@asynccontextmanager
async def sentry(dsn: str, *, environment: str, release: str) -> AsyncGenerator[None]:
    """While the context is active, a background thread sends critical events and errors that are not domain
    errors. Without a DSN it does nothing and does not import the SDK.
    """
    if not dsn:
        yield
        return
    reporter = await asyncio.to_thread(_Reporter, dsn, environment, release)
    stop_listening = listen(reporter.on_event)
    try:
        yield
    finally:
        stop_listening()
        await asyncio.to_thread(reporter.close)


class _Reporter:
    def __init__(self, dsn: str, environment: str, release: str) -> None:
        import sentry_sdk  # noqa: PLC0415  slow import, not needed without a DSN

        # A separate client without the SDK's global hooks, so that it sends only what is passed to it.
        # Personal data is off by default (the deprecated send_default_pii and its successor).
        self._client = sentry_sdk.Client(
            dsn,
            environment=environment,
            release=release,
            default_integrations=False,
            auto_enabling_integrations=False,
            include_local_variables=False,
            include_source_context=False,
            max_request_body_size="never",
            max_breadcrumbs=0,
            auto_session_tracking=False,
            send_client_reports=False,
            server_name="",
            before_send=_scrubbed,
        )

    def on_event(self, event: EventDict) -> None:
        level = event.get("level")
        if level not in LOUD:
            return
        with suppress(Exception):  # reporting must not break the code that logs
            error = _exception(event.get("exc_info"))
            if level == "critical" or (error is not None and not isinstance(error, DomainError)):
                self._send(event, error)

    def _send(self, event: EventDict, error: BaseException | None) -> None:
        from sentry_sdk.utils import event_from_exception  # noqa: PLC0415  slow import

        report: Any = {}
        if error is not None:
            report, _ = event_from_exception(error, client_options=self._client.options)
        report["level"] = "fatal" if event["level"] == "critical" else "error"
        report["logger"] = str(event.get("logger", ""))
        report["logentry"] = {"message": str(event.get("event", ""))}
        report["tags"] = {"request_id": event["request_id"]} if "request_id" in event else {}
        report["extra"] = {name: value for name, value in event.items() if name not in REPORTED_FIELDS}
        self._client.capture_event(report)

    def close(self) -> None:
        self._client.close(timeout=FLUSH_S)


def _exception(exc_info: object) -> BaseException | None:
    """Accepts all forms of exc_info that logging accepts."""
    if isinstance(exc_info, tuple):
        return next((part for part in cast("Parts", exc_info) if isinstance(part, BaseException)), None)
    if isinstance(exc_info, BaseException):
        return exc_info
    return sys.exc_info()[1] if exc_info else None


def _scrubbed(event: Any, _: object) -> Any:  # noqa: ANN401  Sentry's types exist for type checkers only
    allowed: dict[str, Any] = {
        name: redacted(value) for name, value in event.items() if name in ALLOWED_FIELDS
    }
    for error in allowed.get("exception", {}).get("values", ()):
        error["value"] = _redacted_line(str(error.get("value") or ""))
        stack: dict[str, list[dict[str, Any]]] = error.get("stacktrace") or {"frames": []}
        error["stacktrace"] = {"frames": [_frame(frame) for frame in stack["frames"]]}
    return allowed


def _frame(frame: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in frame.items() if name in ALLOWED_FRAME_FIELDS}


def _redacted_line(text: str) -> str:
    """The first line only, because PostgreSQL quotes the row in the next ones; without email addresses."""
    first = text.partition("\n")[0]
    return _EMAIL.sub("[redacted]", redact(first))
