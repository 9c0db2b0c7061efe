"""What the analysis slice needs of others, in its own words."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol, TypeVar
from uuid import UUID

import msgspec

from features.analysis.domain.analysis import Analysis, AnalysisEntry, ExistingLead, SavedLead, StoredAnalysis
from features.analysis.domain.anonymous import AnonymousResult
from features.analysis.domain.bulk import BulkItem, BulkPage, Checked, Counts, Rejection
from features.analysis.domain.eligibility import OwnFetch
from features.analysis.domain.leads import BusinessProfileId, Lead, LeadId, Sort
from features.analysis.domain.profile.profile import AnalysisType, Scrape
from features.analysis.domain.requests import NewAnalysis, NewBulkAnalysis
from features.analysis.domain.scoring.ideal_customer import Business, IdealCustomer
from features.analysis.domain.scoring.scoring import Tier
from shared.caller import Caller
from shared.ids import AccountId, RunId, UserId
from shared.llm import Completion, CostOwner, StructuredPrompt
from shared.pagination import Cursor, SortedCursor

T = TypeVar("T")
GivenUp = Literal["cancelled", "skipped"]  # an item that was never started


class ProfileSource(Protocol):
    """Where profiles are looked at. Raises ProfilesUnavailable when every attempt has failed, and another
    Unavailable when our own database or slots fail; a task that is cancelled stops the looking, also at the
    other end.
    """

    async def look(self, username: str, *, posts_max: int, spender: CostOwner) -> Scrape: ...


class CompletionProvider(Protocol):
    """Kept by the AI gateway."""

    async def answer(self, question: StructuredPrompt[T]) -> Completion[T]: ...


class ProfileCache(Protocol):
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
        self, *, is_hit: bool, reason: str, username: str, age_s: float | None, spender: CostOwner
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
        self, caller: Caller, only: LeadFilter, *, sort: Sort, after: SortedCursor | None, leads_max: int
    ) -> list[Lead]: ...

    async def get(self, caller: Caller, lead_id: LeadId) -> ExistingLead | None:
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
        self, caller: Caller, only: AnalysisFilter, *, after: Cursor | None, analyses_max: int
    ) -> list[AnalysisEntry] | None:
        """Newest first, as far back as the account's plan goes. None when there is no such lead."""
        ...

    async def get(self, caller: Caller, analysis_id: RunId) -> StoredAnalysis | None: ...


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
        spender: CostOwner,
    ) -> None: ...


class AnalysisResults(Protocol):
    async def save(self, analysis: Analysis) -> SavedLead:
        """The lead, new or brought up to date, and the analysis. Joins the admin transaction that is open;
        may be repeated.
        """
        ...


# Starting


class StepSeconds(Protocol):
    @property
    def steps_s(self) -> tuple[tuple[str, float], ...]: ...


class Durations(Protocol):
    """Kept by the runs slice: how long the steps of a kind of run usually take."""

    async def of(self, kind: str) -> StepSeconds: ...


class RunPayer(msgspec.Struct, frozen=True, kw_only=True):
    """Whose credits, and who spends them: a person or a key."""

    account_id: AccountId
    user_id: UserId | None = None
    api_key_id: UUID | None = None


class StartedRun(msgspec.Struct, frozen=True, kw_only=True):
    run_id: RunId
    status: str
    credits_held: int
    is_duplicate: bool = False  # it was in progress already, and is not paid for again


class AnalysisRuns(Protocol):
    """Kept by the runs slice. Every start may be repeated by its id."""

    async def start(
        self, run_id: RunId, payer: RunPayer, order: NewAnalysis, *, credits_held: int
    ) -> StartedRun:
        """Credits, run and queue in one round trip, or nothing. Raises InsufficientCredits,
        ApiKeyCapReached, BusinessProfileNotFound, AccountNotFound and LightLimitReached.
        """
        ...

    async def start_bulk(
        self, run_id: RunId, payer: RunPayer, order: NewBulkAnalysis, rows: Checked, *, credits_each: int
    ) -> StartedRun:
        """Raises InsufficientCredits when its first item cannot be paid, and AccountNotFound."""
        ...


class Prices(Protocol):
    async def credits(self, analysis_type: AnalysisType) -> int:
        """At most a minute old."""
        ...


class AnalysisQuotas(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the caller's account before anything is started."""

    plan: str
    runs_at_once: int
    runs_at_work: int
    light_per_hour: int
    bulk_max: int
    credits_available: int
    customer: IdealCustomer  # the bounds of the business, not its words
    duplicate_run_id: RunId | None


class AnalysisQuotaReader(Protocol):
    async def terms(
        self, caller: Caller, business_profile_id: BusinessProfileId, *, dedup_key: str | None = None
    ) -> AnalysisQuotas:
        """Raises BusinessProfileNotFound, and what is wrong with the account."""
        ...


class FetchReader(Protocol):
    async def fetches(self, caller: Caller, order: NewAnalysis) -> list[OwnFetch]:
        """What the account's own runs found out about the profile, the newest first. Never what other
        accounts fetched.
        """
        ...


class BulkReader(Protocol):
    async def page(
        self, caller: Caller, run_id: RunId, *, after_position: int, items_max: int
    ) -> BulkPage | None:
        """Raises what is wrong with the account."""
        ...


class AnonymousRun(msgspec.Struct, frozen=True, kw_only=True):
    run_id: RunId
    status: str
    expires_at: datetime


class AnonymousAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    progress: int
    current_step: str | None
    outcome: str | None
    result: AnonymousResult | None
    expires_at: datetime


class AnonymousResults(Protocol):
    """What visitors without an account are shown, by tokens of which only the hashes are kept."""

    async def start(self, run_id: RunId, order: NewAnalysis, *, token_hash: bytes) -> AnonymousRun:
        """Visitors who ask for the same share the run that is in progress. Raises LightLimitReached."""
        ...

    async def save(self, run_id: RunId, result: AnonymousResult) -> None:
        """Joins the admin transaction that is open; may be repeated."""
        ...

    async def find(self, token_hash: bytes) -> AnonymousAnalysis | None:
        """None when there is none, or its time is over."""
        ...


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
