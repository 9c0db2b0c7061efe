"""Relay of DBOS log records to our structured log."""

import logging

import structlog

NAME = "dbos"
LENGTH_MAX = 300

log: structlog.stdlib.BoundLogger = structlog.get_logger("engine")


class _Relay(logging.Handler):
    """Relays the first line and the type of the error only: further text may contain tenants' data."""

    def emit(self, record: logging.LogRecord) -> None:
        lines = record.getMessage().splitlines() or [""]
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        log.log(record.levelno, "engine_says", said=lines[0][:LENGTH_MAX], error=kind)


def relay_log() -> None:
    """Idempotent. Call before DBOS starts: it adds its own handler when the logger has none."""
    logger = logging.getLogger(NAME)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(_Relay())
