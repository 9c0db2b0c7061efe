"""Database of the simulated Stripe: a file that several processes share and that outlives them."""

import secrets
import sqlite3
import string
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from simulators.faults.provider_requests import Document, RequestRejected

BUSY_TIMEOUT_S = 30.0
LETTERS = string.ascii_letters + string.digits
SCHEMA_VERSION = 2  # a file with another version is emptied
TABLES = {
    "objects": """
        seq integer primary key autoincrement,
        id text not null unique,
        kind text not null,
        customer text,
        due integer,  -- time at which the object changes by itself
        document text not null""",
    "responses": """
        idempotency_key text primary key,
        request text not null,
        status integer not null,
        body blob not null""",
    "deliveries": """
        id integer primary key autoincrement,
        event text not null,
        endpoint text not null,
        status text not null,  -- pending, delivered, dropped, failed
        due_s real not null,  -- real time, not Stripe's clock
        attempts integer not null default 0,
        response_status integer""",
    "settings": "name text primary key, value text not null",
}
INDEXES = (
    "create index objects_by_kind on objects (kind, seq)",
    "create index objects_by_customer on objects (customer, kind, seq)",
    "create index objects_due on objects (due) where due is not null",
    "create index deliveries_due on deliveries (status, due_s)",
)


def new_id(prefix: str, length: int = 24) -> str:
    return f"{prefix}_" + "".join(secrets.choice(LETTERS) for _ in range(length))


class Store:
    """Blocks during a write, which is short. Has one connection, for one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.address = ""  # address for clients, used in links
        self._connection: sqlite3.Connection | None = None
        self._fixed_now: int | None = None

    @property
    def database(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
            self._connection.row_factory = sqlite3.Row
            # Data lost in a crash of the machine has no value here.
            self._connection.executescript("pragma journal_mode = wal; pragma synchronous = off")
            with self.transaction():
                _create_tables(self._connection)
        return self._connection

    @property
    def exists(self) -> bool:
        return self._connection is not None or self._path.exists()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def transaction(self) -> Generator[None]:
        self.database.execute("begin immediate")
        try:
            yield
        except BaseException:
            self.database.execute("rollback")
            raise
        self.database.execute("commit")

    def now(self) -> int:
        """Returns the time of Stripe's clock, which tests can advance."""
        if self._fixed_now is not None:
            return self._fixed_now
        return int(time.time()) + self.setting("clock_offset_s", 0)

    @contextmanager
    def at(self, moment: int) -> Generator[None]:
        """Sets the clock to that time for the duration of the block."""
        before, self._fixed_now = self._fixed_now, moment
        try:
            yield
        finally:
            self._fixed_now = before

    def put(self, document: Document) -> Document:
        customer = document.get("customer")
        self.database.execute(
            "insert into objects (id, kind, customer, due, document) values (?, ?, ?, ?, ?) on conflict (id)"
            " do update set customer = excluded.customer, due = excluded.due, document = excluded.document",
            (document["id"], document["object"], customer, document.get("_due"), _encoded(document)),
        )
        return document

    def find(self, object_id: str) -> Document | None:
        row = self.database.execute("select document from objects where id = ?", (object_id,)).fetchone()
        return None if row is None else msgspec.json.decode(row[0])

    def get(self, object_id: str, kind: str, *, param: str = "id") -> Document:
        found = self.find(object_id)
        if found is None or found["object"] != kind:
            noun = kind.rpartition(".")[2].replace("_", " ")
            raise RequestRejected(404, "resource_missing", f"No such {noun}: '{object_id}'", param=param)
        return found

    def remove(self, object_id: str) -> None:
        self.database.execute("delete from objects where id = ?", (object_id,))

    def find_all(self, kind: str, where: str = "true", values: tuple[Any, ...] = ()) -> list[Document]:
        """Returns newest first; ``where`` is trusted SQL over ``seq``, ``customer`` and ``document``."""
        rows = self.database.execute(
            f"select document from objects where kind = ? and {where} order by seq desc",  # noqa: S608
            (kind, *values),
        )
        return [msgspec.json.decode(row[0]) for row in rows]

    def find_due(self) -> Document | None:
        row = self.database.execute(
            "select document from objects where due <= ? order by due, seq limit 1", (self.now(),)
        ).fetchone()
        return None if row is None else msgspec.json.decode(row[0])

    def setting(self, name: str, default: Any) -> Any:  # noqa: ANN401  of the default's kind
        row = self.database.execute("select value from settings where name = ?", (name,)).fetchone()
        return default if row is None else msgspec.json.decode(row[0])

    def set(self, name: str, value: object) -> None:
        self.database.execute("insert or replace into settings values (?, ?)", (name, _encoded(value)))

    def clear(self) -> None:
        if self.exists:
            with self.transaction():
                for table in TABLES:
                    self.database.execute(f"delete from {table}")  # noqa: S608


def _create_tables(database: sqlite3.Connection) -> None:
    if database.execute("pragma user_version").fetchone()[0] == SCHEMA_VERSION:
        return
    for table in ("answers", *TABLES):  # version 1 had a table of answers
        database.execute(f"drop table if exists {table}")
    for table, columns in TABLES.items():
        database.execute(f"create table {table} ({columns})")
    for statement in INDEXES:
        database.execute(statement)
    database.execute(f"pragma user_version = {SCHEMA_VERSION}")


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()
