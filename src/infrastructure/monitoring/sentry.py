"""What nobody expected reaches a person, by Sentry. Refusals are answers and not alarms: those are data
points of the requests (``traffic.requests.code``).
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
# The rest of an event is left behind: the request, its user, this machine's name.
KEPT = frozenset(
    {
        *("event_id", "timestamp", "level", "logger", "platform", "environment", "release", "sdk"),
        *("logentry", "exception", "tags", "extra"),
    }
)
FRAME_KEPT = frozenset({"filename", "function", "module", "lineno", "abs_path", "context_line", "in_app"})
TOLD_OTHERWISE = frozenset(
    {*("event", "level", "logger", "exc_info", "request_id", "timestamp"), *("_record", "_from_structlog")}
)
Parts = tuple[object, ...]
_EMAIL = re.compile(r"[^\s@<>()'\"=]+@[^\s@<>()'\"=]+\.\w+")


@asynccontextmanager
async def sentry(dsn: str, *, environment: str, release: str) -> AsyncGenerator[None]:
    """As long as it lasts, errors that are no refusals and critical events are sent, by a thread of its
    own. Without a DSN nothing is, and the client is not even imported.
    """
    if not dsn:
        yield
        return
    reporter = await asyncio.to_thread(_Reporter, dsn, environment, release)
    stop_listening = listen(reporter.hear)
    try:
        yield
    finally:
        stop_listening()
        await asyncio.to_thread(reporter.close)


class _Reporter:
    def __init__(self, dsn: str, environment: str, release: str) -> None:
        import sentry_sdk  # noqa: PLC0415  takes a second, and most systems do without

        # A client of our own and not the process's: it has no hooks, and hears what it is told. Personal
        # data is off unless asked for (send_default_pii, which is deprecated, as well as its heir).
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

    def hear(self, event: EventDict) -> None:
        level = event.get("level")
        if level not in LOUD:
            return
        with suppress(Exception):  # whatever it is, the one who logs must not suffer from it
            error = _exception(event.get("exc_info"))
            if level == "critical" or (error is not None and not isinstance(error, DomainError)):
                self._send(event, error)

    def _send(self, event: EventDict, error: BaseException | None) -> None:
        from sentry_sdk.utils import event_from_exception  # noqa: PLC0415  as above

        told: Any = {}
        if error is not None:
            told, _ = event_from_exception(error, client_options=self._client.options)
        told["level"] = "fatal" if event["level"] == "critical" else "error"
        told["logger"] = str(event.get("logger", ""))
        told["logentry"] = {"message": str(event.get("event", ""))}
        told["tags"] = {"request_id": event["request_id"]} if "request_id" in event else {}
        told["extra"] = {name: value for name, value in event.items() if name not in TOLD_OTHERWISE}
        self._client.capture_event(told)

    def close(self) -> None:
        self._client.close(timeout=FLUSH_S)


def _exception(exc_info: object) -> BaseException | None:
    """From any of the forms in which logs take it."""
    if isinstance(exc_info, tuple):
        return next((part for part in cast("Parts", exc_info) if isinstance(part, BaseException)), None)
    if isinstance(exc_info, BaseException):
        return exc_info
    return sys.exc_info()[1] if exc_info else None


def _scrubbed(event: Any, _: object) -> Any:  # noqa: ANN401  Sentry's own types are there for checkers only
    kept: dict[str, Any] = {name: redacted(value) for name, value in event.items() if name in KEPT}
    for error in kept.get("exception", {}).get("values", ()):
        error["value"] = _blotted(str(error.get("value") or ""))
        stack: dict[str, list[dict[str, Any]]] = error.get("stacktrace") or {"frames": []}
        error["stacktrace"] = {"frames": [_frame(frame) for frame in stack["frames"]]}
    return kept


def _frame(frame: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in frame.items() if name in FRAME_KEPT}


def _blotted(text: str) -> str:
    """The first line: a database's next ones quote the row. No addresses of people."""
    first = text.partition("\n")[0]
    return _EMAIL.sub("[redacted]", redact(first))
