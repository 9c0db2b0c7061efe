"""DBOS configuration, with the reason for each deviation from the defaults, and its log."""

import logging
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
import structlog
from dbos import DBOSConfig, DBOSPortableJSONSerializer

NAME = "oslira"
# Never change this: DBOS does not dequeue workflows of another version. A changed workflow calls
# RunContext.patch to choose the old or the new path.
VERSION = "oslira"
CONNECTIONS_MAX = 10
CONNECT_TIMEOUT_S = 5
MESSAGE_LENGTH_MAX = 300  # of a log record of DBOS
THREADS_MAX = 64  # for the whole process: asyncio.to_thread uses the pool of DBOS while DBOS runs


log: structlog.stdlib.BoundLogger = structlog.get_logger("engine")


@dataclass(frozen=True, slots=True)
class EngineDatabase:
    """``url``: connects as the service role. ``pools_transactions``: it is a transaction pooler's URL."""

    url: str
    pools_transactions: bool


def configuration(database: EngineDatabase, executor: str) -> DBOSConfig:
    return {
        "name": NAME,
        "application_version": VERSION,
        # By default all processes have the same id, and each start recovers the workflows of the others.
        "executor_id": executor,
        "system_database_url": database.url,
        "run_migrations": False,  # the schema owner migrates, see core.engine.schema
        # The default is pickle, with which write access to a row means code execution.
        "serializer": DBOSPortableJSONSerializer(),
        "enable_patching": True,
        # No workflow waits for DBOS notifications, and a transaction pooler would lose them.
        "use_listen_notify": False,
        # The role sets this timeout; a session setting would leak to other clients of a pooler.
        "sys_db_idle_transaction_timeout_sec": 0,
        "max_executor_threads": THREADS_MAX,
        "db_engine_kwargs": {
            "creator": partial(_connect, database),
            "pool_pre_ping": False,  # pings would be half of all commits; DBOS retries lost connections
            "pool_size": CONNECTIONS_MAX,
            "hide_parameters": True,  # error texts are logged and must not contain tenants' data
        },
        "log_level": "WARNING",
    }


def _connect(database: EngineDatabase) -> psycopg.Connection[Any]:
    try:
        return psycopg.connect(
            database.url,
            application_name="oslira-engine",
            connect_timeout=CONNECT_TIMEOUT_S,
            # A pooler may switch sessions, and prepared statements exist in one session only.
            prepare_threshold=None if database.pools_transactions else 5,
        )
    except psycopg.OperationalError as error:
        # DBOS retries only errors with this text; the text of the current psycopg is different.
        raise psycopg.OperationalError(f"connection failed: {type(error).__name__}") from error


class _Relay(logging.Handler):
    """Relays the first line and the type of the error only: further text may contain tenants' data."""

    def emit(self, record: logging.LogRecord) -> None:
        lines = record.getMessage().splitlines() or [""]
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        log.log(record.levelno, "dbos_logged", message=lines[0][:MESSAGE_LENGTH_MAX], error=kind)


def relay_log() -> None:
    """Idempotent. Call before DBOS starts: it adds its own handler when the logger has none."""
    logger = logging.getLogger("dbos")
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(_Relay())
