"""How the engine is set up: what was measured to work, and what its defaults would do instead."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
from dbos import DBOSConfig, DBOSPortableJSONSerializer

NAME = "oslira"
# Never changed: work that waits under another version waits for ever. A changed workflow asks Work.patch
# which way a run goes.
VERSION = "oslira"
CONNECTIONS_MAX = 10
CONNECT_TIMEOUT_S = 5
THREADS_MAX = 64  # of the whole process: asyncio.to_thread is served by the engine's while it runs


@dataclass(frozen=True, slots=True)
class EngineDatabase:
    """``url``: the service's own. ``pools_transactions``: it leads to a transaction pooler."""

    url: str
    pools_transactions: bool


def configuration(database: EngineDatabase, executor: str) -> DBOSConfig:
    return {
        "name": NAME,
        "application_version": VERSION,
        # By default every process is called the same, and each start takes the others' work.
        "executor_id": executor,
        "system_database_url": database.url,
        "run_migrations": False,  # the owner's business, see core.engine.schema
        # By default values are pickled, and whoever writes a row runs code.
        "serializer": DBOSPortableJSONSerializer(),
        "enable_patching": True,
        # Nobody here waits for the engine's messages, and a pooler would lose them.
        "use_listen_notify": False,
        # The role has one of its own; set for a session, it would stay in a pooler's.
        "sys_db_idle_transaction_timeout_sec": 0,
        "max_executor_threads": THREADS_MAX,
        "db_engine_kwargs": {
            "creator": partial(_connect, database),
            "pool_pre_ping": False,  # half of all commits; a lost connection is tried again anyway
            "pool_size": CONNECTIONS_MAX,
            "hide_parameters": True,  # an error's text is logged, a tenant's data is not
        },
        "log_level": "WARNING",
    }


def _connect(database: EngineDatabase) -> psycopg.Connection[Any]:
    try:
        return psycopg.connect(
            database.url,
            application_name="oslira-engine",
            connect_timeout=CONNECT_TIMEOUT_S,
            # Statements prepared in one session are not there in the next, which a pooler may choose.
            prepare_threshold=None if database.pools_transactions else 5,
        )
    except psycopg.OperationalError as error:
        # The engine tries again when it reads these words, and today's client has others.
        raise psycopg.OperationalError(f"connection failed: {type(error).__name__}") from error
