from collections.abc import AsyncIterator
from dataclasses import dataclass

from features.leads.application.ports import LeadFilter, LeadStore
from features.leads.domain.errors import LeadNotFound
from features.leads.domain.leads import SORTS, Lead, LeadAnalysis, LeadDetails, Sort
from shared.caller import Caller
from shared.ids import LeadId
from shared.pagination import Cursor, Page, SortedCursor, decode_cursor, decode_sorted, encode_sorted, page_of

EXPORT_CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class Leads:
    """Leads of an account. A lead is readable at any age; its history goes back as far as the account's plan
    allows.
    """

    store: LeadStore

    async def page(
        self, caller: Caller, filters: LeadFilter, *, sort: Sort, cursor: str | None, limit: int
    ) -> Page[Lead]:
        """Leads added, removed or analysed between two pages do not shift the others, because the cursor is a
        value and not an offset.
        """
        after = decode_sorted(cursor, sort, SORTS[sort])
        found = await self.store.list(caller, filters, sort=sort, after=after, leads_max=limit + 1)
        if len(found) <= limit:
            return Page(found, None)
        return Page(found[:limit], encode_sorted(sort, _cursor(found[limit - 1], sort)))

    async def export(self, caller: Caller, filters: LeadFilter) -> AsyncIterator[list[Lead]]:
        """Yields all leads in chunks, ordered by username. A username never changes, so each lead appears
        once even if analyses run meanwhile. No transaction stays open while a client reads slowly.
        """
        after: SortedCursor | None = None
        while True:
            chunk = await self.store.list(
                caller, filters, sort="username", after=after, leads_max=EXPORT_CHUNK
            )
            yield chunk
            if len(chunk) < EXPORT_CHUNK:
                return
            after = _cursor(chunk[-1], "username")

    async def get(self, caller: Caller, lead_id: LeadId) -> LeadDetails:
        """The comparison is part of the lead, so the plan's history limit does not apply to it."""
        details = await self.store.get(caller, lead_id)
        if details is None:
            raise LeadNotFound
        return details

    async def history(
        self, caller: Caller, lead_id: LeadId, *, cursor: str | None, limit: int
    ) -> Page[LeadAnalysis]:
        found = await self.store.history(caller, lead_id, after=decode_cursor(cursor), analyses_max=limit + 1)
        if found is None:
            raise LeadNotFound
        return page_of(found, limit, lambda entry: Cursor(entry.created_at, entry.id))

    async def delete(self, caller: Caller, lead_id: LeadId) -> None:
        """Also hides the lead's analyses. A later analysis of the same profile creates a new lead."""
        if not await self.store.delete(caller, lead_id):
            raise LeadNotFound

    async def restore(self, caller: Caller, lead_id: LeadId) -> Lead:
        """Idempotent: a lead that is not deleted stays unchanged. Raises LeadAlreadyExists."""
        lead = await self.store.restore(caller, lead_id)
        if lead is None:
            raise LeadNotFound
        return lead


def _cursor(lead: Lead, sort: Sort) -> SortedCursor:
    return SortedCursor(lead.sorted_by(sort), lead.id)
