"""Ports of the analysis slice."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol, TypeVar
from uuid import UUID

import msgspec

from features.analysis.domain.alerts import Alert
from features.analysis.domain.analysis import Analysis, AnalysisEntry, SavedLead, StoredAnalysis
from features.analysis.domain.anonymous import AnonymousResult
from features.analysis.domain.bulk import BulkItem, BulkPage, Checked, Counts, Rejection
from features.analysis.domain.eligibility import OwnFetch
from features.analysis.domain.profile.profile import Scrape
from features.analysis.domain.requests import NewAnalysis, NewBulkAnalysis
from features.analysis.domain.scoring.ideal_customer import Business, IdealCustomer
from shared.caller import Caller
from shared.ids import AccountId, AnalysisType, BusinessProfileId, LeadId, RunId, UserId
from shared.llm import Completion, CostOwner, StructuredPrompt
from shared.pagination import Cursor

T = TypeVar("T")
UnstartedEnd = Literal["cancelled", "skipped"]  # final states of an item that was never started


class ProfileSource(Protocol):
    """Fetches profiles from external providers. Raises ProfilesUnavailable when every attempt has failed,
    and another Unavailable when our database or the provider slots fail. Cancelling the task also stops the
    provider's run.
    """

    async def fetch(self, username: str, *, posts_max: int, cost_owner: CostOwner) -> Scrape: ...


class CompletionProvider(Protocol):
    """Implemented by the AI gateway."""

    async def complete(self, prompt: StructuredPrompt[T]) -> Completion[T]: ...


class ProfileCache(Protocol):
    """Cache of fetched profiles. Never raises: an unreadable entry counts as absent, and a failed write only
    means that the profile is fetched again.
    """

    async def find(self, username: str, *, posts_min: int) -> Scrape | None:
        """Returns the newest entry that was fetched with at least ``posts_min`` posts requested."""
        ...

    async def save(self, username: str, scrape: Scrape) -> None: ...

    async def delete(self, username: str) -> None: ...


class CacheRecord(Protocol):
    """Accepts a data point and returns immediately. Never raises."""

    def __call__(
        self, *, is_hit: bool, reason: str, username: str, age_s: float | None, cost_owner: CostOwner
    ) -> None: ...


class AnalysisFilter(msgspec.Struct, frozen=True, kw_only=True):
    lead_id: LeadId | None = None
    business_profile_id: BusinessProfileId | None = None
    analysis_type: AnalysisType | None = None


class AnalysisStore(Protocol):
    """Analyses that the caller may read, without those of deleted leads. Raises AccountNotFound or
    AccountNotChosen.
    """

    async def list(
        self, caller: Caller, only: AnalysisFilter, *, after: Cursor | None, analyses_max: int
    ) -> list[AnalysisEntry]:
        """Newest first, as far back as the account's plan allows."""
        ...

    async def get(self, caller: Caller, analysis_id: RunId) -> StoredAnalysis | None: ...


class Businesses(Protocol):
    """Implemented by the business slice."""

    async def find(self, account_id: AccountId, business_profile_id: BusinessProfileId) -> Business | None:
        """Returns None when the profile does not exist or is deleted. Reads as the system, for a run."""
        ...


class AnalysisRecord(Protocol):
    """Accepts a data point and returns immediately. Never raises."""

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
        cost_owner: CostOwner,
    ) -> None: ...


class AlertLog(Protocol):
    """Logs an alert for operators. Never raises."""

    def __call__(self, run_id: RunId, analysis_type: AnalysisType, alert: Alert) -> None: ...


class EndedRun(Protocol):
    @property
    def status(self) -> str: ...

    @property
    def cost_nanodollars(self) -> int | None: ...

    @property
    def started_at(self) -> datetime | None: ...

    @property
    def ended_at(self) -> datetime | None: ...


class EndedRuns(Protocol):
    """Implemented by the runs slice."""

    async def find(self, account_id: AccountId, run_id: RunId) -> EndedRun | None: ...


class AnalysisResults(Protocol):
    async def save(self, analysis: Analysis) -> SavedLead:
        """Stores the analysis and creates or updates its lead. Idempotent. Joins the admin transaction."""
        ...


# Starting


class StepSeconds(Protocol):
    @property
    def steps_s(self) -> tuple[tuple[str, float], ...]: ...


class Durations(Protocol):
    """Usual duration of each step of a kind of run. Implemented by the runs slice."""

    async def of(self, kind: str) -> StepSeconds: ...


class RunPayer(msgspec.Struct, frozen=True, kw_only=True):
    """Account that pays, and the user or API key that spends its credits."""

    account_id: AccountId
    user_id: UserId | None = None
    api_key_id: UUID | None = None


class StartedRun(msgspec.Struct, frozen=True, kw_only=True):
    run_id: RunId
    status: str
    credits_held: int
    is_duplicate: bool = False  # an equal run was in progress; it is not charged again


class AnalysisRuns(Protocol):
    """Implemented by the runs slice. Every start is idempotent by its run id."""

    async def start(
        self, run_id: RunId, payer: RunPayer, order: NewAnalysis, *, credits_held: int
    ) -> StartedRun:
        """Holds the credits, creates the run and enqueues it in one round trip, or does none of these. Raises
        InsufficientCredits, ApiKeyCapReached, BusinessProfileNotFound, AccountNotFound and LightLimitReached.
        """
        ...

    async def start_bulk(
        self, run_id: RunId, payer: RunPayer, order: NewBulkAnalysis, rows: Checked, *, credits_each: int
    ) -> StartedRun:
        """Raises InsufficientCredits when the first item cannot be paid, and AccountNotFound."""
        ...


class Prices(Protocol):
    async def credits(self, analysis_type: AnalysisType) -> int:
        """The price may be up to one minute old."""
        ...


class AnalysisQuotas(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and balance of the caller's account before a start."""

    plan: str
    runs_at_once: int
    runs_at_work: int
    light_per_hour: int
    bulk_max: int
    credits_available: int
    customer: IdealCustomer  # numeric bounds only, without the niches and other terms
    duplicate_run_id: RunId | None


class AnalysisQuotaReader(Protocol):
    async def terms(
        self, caller: Caller, business_profile_id: BusinessProfileId, *, dedup_key: str | None = None
    ) -> AnalysisQuotas:
        """Raises BusinessProfileNotFound, AccountNotFound or AccountNotChosen."""
        ...


class FetchReader(Protocol):
    async def fetches(self, caller: Caller, order: NewAnalysis) -> list[OwnFetch]:
        """Results of the account's own fetches of the profile, newest first. Never includes fetches of other
        accounts.
        """
        ...


class BulkReader(Protocol):
    async def page(
        self, caller: Caller, run_id: RunId, *, after_position: int, items_max: int
    ) -> BulkPage | None:
        """Raises AccountNotFound or AccountNotChosen."""
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
    """Results for visitors without an account. Only the hashes of their tokens are stored."""

    async def start(self, run_id: RunId, order: NewAnalysis, *, token_hash: bytes) -> AnonymousRun:
        """Visitors with equal requests share the run in progress. Raises LightLimitReached."""
        ...

    async def save(self, run_id: RunId, result: AnonymousResult) -> None:
        """Joins the open admin transaction. Idempotent."""
        ...

    async def find(self, token_hash: bytes) -> AnonymousAnalysis | None:
        """Returns None when there is no such token or it has expired."""
        ...


class BulkItems(Protocol):
    """Rows of bulk runs. Every method is idempotent and joins the open admin transaction."""

    async def add(
        self,
        account_id: AccountId,
        run_id: RunId,
        usernames: Sequence[tuple[int, str]],
        rejections: Sequence[Rejection],
    ) -> None:
        """``usernames`` are pairs of position and username."""
        ...

    async def unstarted(self, account_id: AccountId, run_id: RunId, items_max: int) -> list[BulkItem]:
        """Ordered by position."""
        ...

    async def mark_started(
        self, account_id: AccountId, run_id: RunId, position: int, item_run_id: RunId
    ) -> None: ...

    async def settle(self, account_id: AccountId, run_id: RunId) -> Counts:
        """Stores the outcomes of the items' ended runs and returns the counts."""
        ...

    async def end_unstarted(
        self, account_id: AccountId, run_id: RunId, status: UnstartedEnd, outcome: str
    ) -> int:
        """Ends every item that was not started and returns their number."""
        ...
