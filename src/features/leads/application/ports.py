"""Ports of the leads slice."""

from typing import Protocol

import msgspec

from features.leads.domain.leads import Lead, LeadAnalysis, LeadDetails, Sort
from shared.caller import Caller
from shared.ids import AnalysisType, BusinessProfileId, LeadId, Tier
from shared.pagination import Cursor, SortedCursor


class LeadFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Filter for leads. A field that is None or empty does not restrict the list."""

    business_profile_id: BusinessProfileId | None = None
    tiers: tuple[Tier, ...] = ()
    score_min: int | None = None
    score_max: int | None = None
    niche: str | None = None  # case-insensitive
    words: str | None = None  # matched in username, name or biography
    analysis_type: AnalysisType | None = None  # of the latest analysis
    is_deleted: bool = False  # True lists only deleted leads that can be restored


class LeadStore(Protocol):
    """Leads that the caller may read and change. Raises AccountNotFound or AccountNotChosen."""

    async def history(
        self, caller: Caller, lead_id: LeadId, *, after: Cursor | None, analyses_max: int
    ) -> list[LeadAnalysis] | None:
        """Newest first, as far back as the account's plan allows. Returns None when there is no such lead."""
        ...

    async def list(
        self, caller: Caller, filters: LeadFilter, *, sort: Sort, after: SortedCursor | None, leads_max: int
    ) -> list[Lead]: ...

    async def get(self, caller: Caller, lead_id: LeadId) -> LeadDetails | None:
        """Returns None when the lead does not exist or is deleted."""
        ...

    async def delete(self, caller: Caller, lead_id: LeadId) -> bool:
        """Soft-deletes the lead and its analyses; a cron job purges them when the restore period ends.
        Returns False when there is no such lead.
        """
        ...

    async def restore(self, caller: Caller, lead_id: LeadId) -> Lead | None:
        """A lead that is not deleted stays unchanged. Returns None when there is no such lead or its restore
        period is over. Raises LeadAlreadyExists.
        """
        ...
