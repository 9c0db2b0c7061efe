from collections.abc import AsyncIterator
from dataclasses import dataclass

from features.credits.application.ports import CreditReader, EntryFilter
from features.credits.domain.ledger import Entry
from shared.caller import Caller
from shared.pagination import Page, decode_position, encode_position

EXPORT_CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class Statements:
    """Statements of the ledger for its owner, newest entry first."""

    reader: CreditReader

    async def page(self, caller: Caller, only: EntryFilter, *, cursor: str | None, limit: int) -> Page[Entry]:
        before = None if cursor is None else decode_position(cursor)
        # One additional entry shows whether there is another page.
        entries = await self.reader.entries(caller, only, before=before, entries_max=limit + 1)
        more = len(entries) > limit
        entries = entries[:limit]
        return Page(entries, encode_position(entries[-1].position) if more else None)

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
