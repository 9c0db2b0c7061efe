"""Structured logs without secrets: readable lines on a terminal, JSON elsewhere."""

import logging
import re
import sys
from collections.abc import Callable
from typing import cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from shared.middleware.credential_redaction import without_credentials
from shared.middleware.request_id import current_request_id

_SECRETS = re.compile(
    r"(?P<scheme>\w+://[^:/\s@]*:)\S+(?=@)"  # password in a URL
    r"|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*"  # JSON Web Token
    r"|\b(?:sk|rk|whsec|osl_live|osl_test|osl_invite|apify_api|sb_secret)[_-][\w-]{8,}"  # API keys
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.)*?(?:-----END [A-Z ]*-----|\Z)"
    r"|(?P<bearer>(?i:bearer) )[\w.~+/=-]+"
)

Listener = Callable[[EventDict], None]
"""Receives every event before redaction; must not fail."""

_listeners: list[Listener] = []  # per process, like the logging configuration


def listen(listener: Listener) -> Callable[[], None]:
    """Returns a function that removes the listener."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)


def redact(text: str) -> str:
    text = without_credentials(text)
    return _SECRETS.sub(lambda match: (match["scheme"] or match["bearer"] or "") + "[redacted]", text)


def redacted(value: object) -> object:
    """Redacts strings in nested values; other objects become their redacted repr."""
    match value:
        case None | bool() | int() | float():
            return value
        case dict():
            return {name: redacted(item) for name, item in cast("dict[object, object]", value).items()}
        case list() | tuple():
            return [redacted(item) for item in cast("list[object]", value)]
        case str():
            return redact(value)
        case _:
            return redact(repr(value))


def _redact_values(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    # structlog's own fields: already converted to text, or never printed.
    return {name: value if name.startswith("_") else redacted(value) for name, value in event.items()}


def _call_listeners(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    for listener in _listeners:
        listener(event)
    return event


def _add_request_id(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    if request_id := current_request_id.get():
        event["request_id"] = request_id
    return event


def configure_logs(*, as_json: bool, level: int = logging.INFO) -> None:
    """Our logs and the libraries' use the same processors and go to standard error."""
    shared: list[Processor] = [
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_request_id,
        _call_listeners,
        structlog.processors.format_exc_info,
        _redact_values,
    ]
    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler()
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processor=renderer))
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for noisy in ("botocore", "boto3", "urllib3", "httpx", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # asyncpg logs a traceback per second while the server is unreachable; the health check and the failing
    # requests already report it.
    logging.getLogger("asyncpg.pool").setLevel(logging.ERROR)
