"""Durable log: rows that are written even if the caller is cancelled or the database is unavailable."""

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
    """``statement`` takes one column per argument. It must ignore a duplicate row, because a row is sent
    again when the connection was lost before the database confirmed it.
    """

    def __init__(self, name: str, session: AdminClient, statement: LiteralString) -> None:
        self._name = name
        self._session = session
        self._statement: LiteralString = statement
        self._batches: MicroBatcher[Row, None] = MicroBatcher(self._insert, size_max=BATCH_MAX)
        self._later: WriteBehindQueue[Row] = WriteBehindQueue(name, self._insert_later)
        self._writing: set[asyncio.Task[None]] = set()

    async def write(self, row: Row) -> None:
        """The row is durable on return, unless the database is unavailable or takes longer than
        ``WRITE_WAIT_S``: then it is written later. The wait is short because callers write within a
        provider's time limit. The row is written even if the caller is cancelled.
        """
        # An empty context, because the caller may be in a transaction that is rolled back later.
        writing = asyncio.create_task(self._write(row), context=contextvars.Context())
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        await asyncio.wait({writing}, timeout=WRITE_WAIT_S)

    async def close(self) -> None:
        """Waits for current writes, and writes the remaining rows."""
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
        except Exception as error:  # noqa: BLE001  one bad row must not prevent the others
            if len(rows) == 1:
                # The log line is the last record of the row and of its cost.
                log.critical("not_written", what=self._name, cause=type(error).__name__, row=rows[0])
            else:
                for row in rows:
                    await self._insert([row])
        return [None] * len(rows)

    async def _insert_later(self, rows: list[Row]) -> None:
        await self._insert(rows)


def text(value: str) -> str:
    """Returns text that PostgreSQL accepts: no NUL, no lone surrogate, limited length."""
    return value.replace("\0", "").encode(errors="replace").decode()[:TEXT_LENGTH_MAX]


def text_or_none(value: str | None) -> str | None:
    return None if value is None else text(value)


def integer(value: int) -> int:
    return max(-INTEGER_MAX, min(value, INTEGER_MAX))


def bigint(value: int) -> int:
    return max(-BIGINT_MAX, min(value, BIGINT_MAX))


def number(value: float) -> float:
    """Replaces NaN and infinity, which would spoil every sum."""
    return value if math.isfinite(value) else 0.0
