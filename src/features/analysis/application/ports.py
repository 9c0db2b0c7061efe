"""What the analysis slice needs of others, in its own words."""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar
from uuid import UUID

from features.analysis.domain.analysis import Analysis, SavedLead
from features.analysis.domain.bulk import BulkItem, Counts, Rejection
from features.analysis.domain.ideal_customer import Business
from features.analysis.domain.leads import BusinessProfileId
from features.analysis.domain.profile import Scrape
from shared.ids import AccountId, RunId
from shared.questions import Answer, Question, Spender

T = TypeVar("T")
GivenUp = Literal["cancelled", "skipped"]  # an item that was never started


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


# Starting


class BulkItems(Protocol):
    """The rows of bulk runs. Every call may be repeated, and joins the admin transaction that is open."""

    async def add(
        self,
        account_id: AccountId,
        run_id: RunId,
        usernames: Sequence[tuple[int, str]],
        rejections: Sequence[Rejection],
    ) -> None:
        """``usernames``: each with its position."""
        ...

    async def unstarted(self, account_id: AccountId, run_id: RunId, items_max: int) -> list[BulkItem]:
        """In their order."""
        ...

    async def started(
        self, account_id: AccountId, run_id: RunId, position: int, item_run_id: RunId
    ) -> None: ...

    async def settle(self, account_id: AccountId, run_id: RunId) -> Counts:
        """Notes how the items' runs have ended, and counts."""
        ...

    async def give_up(self, account_id: AccountId, run_id: RunId, status: GivenUp, outcome: str) -> int:
        """Ends every item that was not started; how many it were."""
        ...
