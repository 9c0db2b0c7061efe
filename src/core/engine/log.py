"""What the engine says, among our own logs and by our rules."""

import logging

import structlog

NAME = "dbos"
LENGTH_MAX = 300

log: structlog.stdlib.BoundLogger = structlog.get_logger("engine")


class _Relay(logging.Handler):
    """The first line and the kind of error only: further text may be a step's, and so a tenant's."""

    def emit(self, record: logging.LogRecord) -> None:
        lines = record.getMessage().splitlines() or [""]
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        log.log(record.levelno, "engine_says", said=lines[0][:LENGTH_MAX], error=kind)


def relay_log() -> None:
    """To be called before the engine makes a handler of its own, which it does when there is none."""
    logger = logging.getLogger(NAME)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(_Relay())
