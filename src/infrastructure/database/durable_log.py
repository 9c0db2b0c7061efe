"""Things that have to be written down whatever happens to whoever tells them."""

import asyncio
import contextvars
import math
from typing import Generic, LiteralString, TypeVar

import structlog

from infrastructure.database.clients import AdminClient
from infrastructure.database.write_behind import WriteBehindQueue
from infrastructure.resilience.micro_batcher import MicroBatcher
from shared.errors import Unavailable

Row = TypeVar("Row", bound=tuple[object, ...])

BATCH_MAX = 500
WRITE_WAIT_S = 5.0
TEXT_LENGTH_MAX = 500
INTEGER_MAX = 2**31 - 1
BIGINT_MAX = 2**63 - 1

log: structlog.stdlib.BoundLogger = structlog.get_logger("journal")


class DurableLog(Generic[Row]):
    """``statement`` takes a column in each argument. A row may reach it twice, when the database went away
    before it said that it has it: the statement has to let the second one be.
    """

    def __init__(self, name: str, session: AdminClient, statement: LiteralString) -> None:
        self._name = name
        self._session = session
        self._statement: LiteralString = statement
        self._batches: MicroBatcher[Row, None] = MicroBatcher(self._insert, size_max=BATCH_MAX)
        self._later: WriteBehindQueue[Row] = WriteBehindQueue(name, self._insert_later)
        self._writing: set[asyncio.Task[None]] = set()

    async def write(self, row: Row) -> None:
        """Durable when it returns, unless the database is away or takes longer than ``WRITE_WAIT_S``: then
        the row is written later. The wait is short because callers write while a provider's time limit
        runs. A cancelled caller leaves; the row is written all the same.
        """
        # In no context: whoever tells may be in the middle of a transaction, which may yet be undone.
        writing = asyncio.create_task(self._write(row), context=contextvars.Context())
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        await asyncio.wait({writing}, timeout=WRITE_WAIT_S)

    async def close(self) -> None:
        """Wait for what is being written, and write what is left."""
        while self._writing:
            await asyncio.wait(self._writing)
        await self._later.close()

    async def _write(self, row: Row) -> None:
        try:
            await self._batches.ask(row)
        except Unavailable:
            self._later.add(row)

    async def _insert(self, rows: list[Row]) -> list[None]:
        try:
            await self._session.fetch(self._statement, *(list(column) for column in zip(*rows, strict=True)))
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001  one row must not take the others with it
            if len(rows) == 1:
                # The last place where the money can be seen.
                log.critical("not_written", what=self._name, cause=type(error).__name__, row=rows[0])
            else:
                for row in rows:
                    await self._insert([row])
        return [None] * len(rows)

    async def _insert_later(self, rows: list[Row]) -> None:
        await self._insert(rows)


def text(value: str) -> str:
    """As PostgreSQL can keep it: no NUL, no half of a character, not too long."""
    return value.replace("\0", "").encode(errors="replace").decode()[:TEXT_LENGTH_MAX]


def text_or_none(value: str | None) -> str | None:
    return None if value is None else text(value)


def integer(value: int) -> int:
    return max(-INTEGER_MAX, min(value, INTEGER_MAX))


def bigint(value: int) -> int:
    return max(-BIGINT_MAX, min(value, BIGINT_MAX))


def number(value: float) -> float:
    """Neither NaN nor infinity, which no sum survives."""
    return value if math.isfinite(value) else 0.0
