"""What the analysis slice needs of others, in its own words."""

from typing import Protocol, TypeVar
from uuid import UUID

from features.analysis.domain.analysis import Analysis, SavedLead
from features.analysis.domain.ideal_customer import Business
from features.analysis.domain.leads import BusinessProfileId
from features.analysis.domain.profile import Scrape
from shared.ids import AccountId
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


class Businesses(Protocol):
    """Kept by the business slice."""

    async def find(self, account_id: AccountId, business_profile_id: BusinessProfileId) -> Business | None:
        """None when there is none, or it is deleted. Asked by the system, on behalf of a run."""
        ...


class AnalysisRecord(Protocol):
    """Takes a data point and returns at once. Never fails."""

    def __call__(
        self,
        *,
        run_id: UUID,
        username: str,
        analysis_type: str,
        outcome: str,
        cost_nanodollars: int | None,
        duration_ms: float,
        score: float | None,
        spender: Spender,
    ) -> None: ...


class Results(Protocol):
    async def save(self, analysis: Analysis) -> SavedLead:
        """The lead, new or brought up to date, and the analysis. Joins the admin transaction that is open;
        may be repeated.
        """
        ...
