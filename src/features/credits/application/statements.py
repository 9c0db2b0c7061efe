from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec

from features.credits.application.ports import CreditReader, EntryFilter
from features.credits.domain.ledger import Entry
from shared.caller import Caller
from shared.pagination import decode_position, encode_position

EXPORT_CHUNK = 1_000


class StatementPage(msgspec.Struct, frozen=True, kw_only=True):
    entries: list[Entry]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Statements:
    """Statements of the ledger for its owner, newest entry first."""

    reader: CreditReader

    async def page(
        self, caller: Caller, only: EntryFilter, *, cursor: str | None, limit: int
    ) -> StatementPage:
        before = None if cursor is None else decode_position(cursor)
        # One additional entry shows whether there is another page.
        entries = await self.reader.entries(caller, only, before=before, entries_max=limit + 1)
        more = len(entries) > limit
        entries = entries[:limit]
        return StatementPage(
            entries=entries,
            next_cursor=encode_position(entries[-1].position) if more else None,
        )

    async def everything(self, caller: Caller, only: EntryFilter) -> AsyncIterator[list[Entry]]:
        """Yield the whole statement in chunks.

        Entries never change, so new entries do not shift the remaining chunks, and no transaction stays open
        while a client reads slowly.
        """
        before: int | None = None
        while True:
            chunk = await self.reader.entries(caller, only, before=before, entries_max=EXPORT_CHUNK)
            yield chunk
            if len(chunk) < EXPORT_CHUNK:
                return
            before = chunk[-1].position
