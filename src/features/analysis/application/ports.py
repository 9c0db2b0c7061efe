"""What the analysis slice needs of others, in its own words."""

from typing import Protocol, TypeVar

import msgspec

from features.analysis.domain.analysis import Analysis, AnalysisEntry, KeptAnalysis, KnownLead, SavedLead
from features.analysis.domain.ideal_customer import Business
from features.analysis.domain.leads import BusinessProfileId, Lead, LeadId, Sort
from features.analysis.domain.profile import AnalysisType, Scrape
from features.analysis.domain.scoring import Tier
from shared.caller import Caller
from shared.ids import AccountId, RunId
from shared.pages import Place, SortedPlace
from shared.questions import Answer, Question, Spender

T = TypeVar("T")


class ProfileSource(Protocol):
    """Where profiles are looked at. Raises ProfilesUnavailable when every attempt has failed; a task that
    is cancelled stops the looking, also at the other end.
    """

    async def look(self, username: str, *, posts_max: int, spender: Spender) -> Scrape: ...


class Analyst(Protocol):
    """Kept by the AI gateway."""

    async def answer(self, question: Question[T]) -> Answer[T]: ...


class KnownProfiles(Protocol):
    """Profiles that were looked at before. What cannot be read is not there; what cannot be kept is
    looked at again. Never fails.
    """

    async def find(self, username: str, *, posts_min: int) -> Scrape | None:
        """The newest that was asked for as many posts."""
        ...

    async def keep(self, username: str, scrape: Scrape) -> None: ...

    async def forget(self, username: str) -> None: ...


class CacheRecord(Protocol):
    """Takes a data point and returns at once. Never fails."""

    def __call__(
        self, *, is_hit: bool, reason: str, username: str, age_s: float | None, spender: Spender
    ) -> None: ...


class LeadFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which leads; what is None, or empty, does not matter."""

    business_profile_id: BusinessProfileId | None = None
    tiers: tuple[Tier, ...] = ()
    score_min: int | None = None
    score_max: int | None = None
    niche: str | None = None  # whatever its case
    words: str | None = None  # somewhere in username, name or biography
    analysis_type: AnalysisType | None = None  # of the last one
    is_deleted: bool = False  # those that can be restored instead


class AnalysisFilter(msgspec.Struct, frozen=True, kw_only=True):
    lead_id: LeadId | None = None
    business_profile_id: BusinessProfileId | None = None
    analysis_type: AnalysisType | None = None


class LeadStore(Protocol):
    """What a caller may see and change. Raises AccountNotFound or AccountNotChosen."""

    async def list(
        self, caller: Caller, only: LeadFilter, *, sort: Sort, after: SortedPlace | None, leads_max: int
    ) -> list[Lead]: ...

    async def get(self, caller: Caller, lead_id: LeadId) -> KnownLead | None:
        """None also when it is deleted."""
        ...

    async def delete(self, caller: Caller, lead_id: LeadId) -> bool:
        """Only marks it, and its analyses with it; a cron removes them when they can no longer be restored.
        False when there is none.
        """
        ...

    async def restore(self, caller: Caller, lead_id: LeadId) -> Lead | None:
        """One that is not deleted stays as it is. None when there is none, or its time is over. Raises
        LeadTaken.
        """
        ...


class AnalysisStore(Protocol):
    """What a caller may see: nothing of leads that are deleted. Raises as LeadStore does."""

    async def list(
        self, caller: Caller, only: AnalysisFilter, *, after: Place | None, analyses_max: int
    ) -> list[AnalysisEntry] | None:
        """Newest first, as far back as the account's plan goes. None when there is no such lead."""
        ...

    async def get(self, caller: Caller, analysis_id: RunId) -> KeptAnalysis | None: ...


class Businesses(Protocol):
    """Kept by the business slice."""

    async def find(self, account_id: AccountId, business_profile_id: BusinessProfileId) -> Business | None:
        """None when there is none, or it is deleted. Asked by the system, on behalf of a run."""
        ...


class Results(Protocol):
    async def save(self, analysis: Analysis) -> SavedLead:
        """The lead, new or brought up to date, and the analysis. Joins the admin transaction that is open;
        may be repeated.
        """
        ...
