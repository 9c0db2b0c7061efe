"""Structured logs: lines for people on a terminal, JSON elsewhere; never a secret in either."""

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
    r"(?P<scheme>\w+://[^:/\s@]*:)\S+(?=@)"  # a password in an address
    r"|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*"  # a token
    r"|\b(?:sk|rk|whsec|osl_live|osl_test|osl_invite|apify_api|sb_secret)[_-][\w-]{8,}"  # ours, a provider's
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.)*?(?:-----END [A-Z ]*-----|\Z)"
    r"|(?P<bearer>(?i:bearer) )[\w.~+/=-]+"
)

Listener = Callable[[EventDict], None]
"""Hears every event as it was told, before anything is blotted out; never fails."""

_listeners: list[Listener] = []  # of the process, as the logs are


def listen(listener: Listener) -> Callable[[], None]:
    """What is returned ends it."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)


def redact(text: str) -> str:
    text = without_credentials(text)
    return _SECRETS.sub(lambda match: (match["scheme"] or match["bearer"] or "") + "[redacted]", text)


def redacted(value: object) -> object:
    """Whatever it is made of."""
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
    # The record and the exception are the formatter's own and are text by now or never printed.
    return {name: value if name.startswith("_") else redacted(value) for name, value in event.items()}


def _tell_listeners(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    for listener in _listeners:
        listener(event)
    return event


def _add_request_id(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    if request_id := current_request_id.get():
        event["request_id"] = request_id
    return event


def configure_logs(*, as_json: bool, level: int = logging.INFO) -> None:
    """Ours and the libraries' alike go through the same processors to standard error."""
    shared: list[Processor] = [
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_request_id,
        _tell_listeners,
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
    # A pool that cannot reach its server says so once a second, with a traceback; the health page and
    # the requests that need it say it better.
    logging.getLogger("asyncpg.pool").setLevel(logging.ERROR)
