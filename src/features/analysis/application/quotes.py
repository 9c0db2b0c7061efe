"""Price, duration and eligibility of an analysis before it starts."""

from dataclasses import dataclass

import msgspec

from features.analysis.application.ports import (
    AnalysisQuotaReader,
    AnalysisQuotas,
    Durations,
    FetchReader,
    Prices,
)
from features.analysis.domain.eligibility import Eligibility
from features.analysis.domain.estimates import eta_s
from features.analysis.domain.profile.freshness import judge
from features.analysis.domain.requests import NewAnalysis
from features.analysis.domain.scoring.ideal_customer import IdealCustomer
from shared.caller import Caller
from shared.clock import Clock

OwnResult = tuple[bool, Eligibility | None]

NO_FETCH: OwnResult = (False, None)


class RefundTerm(msgspec.Struct, frozen=True, kw_only=True):
    outcome: str
    percent_charged: int
    explanation: str
    credits_charged_min: int


class RefundTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The refund policy of the runs slice, as quoted to the customer."""

    version: int
    rules: tuple[RefundTerm, ...]


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """``is_cached`` and ``checks`` reveal only what the account itself has fetched. ``checks`` is the outcome
    that would end the analysis without charge; None when the account has not fetched the profile recently.
    """

    credits: int
    terms: AnalysisQuotas
    is_cached: bool
    checks: Eligibility | None
    eta_s: int
    refund: RefundTerms

    @property
    def is_affordable(self) -> bool:
        """A request for a run that is in progress is not charged again."""
        return self.terms.credits_available >= self.credits or self.terms.duplicate_run_id is not None


@dataclass(frozen=True, slots=True)
class Quotes:
    """Read-only: a quote writes nothing and fetches no profile."""

    terms: AnalysisQuotaReader
    prices: Prices
    fetches: FetchReader
    durations: Durations
    refund: RefundTerms
    now: Clock

    async def quote(self, caller: Caller, order: NewAnalysis) -> Quote:
        assert order.business_profile_id is not None, "an anonymous analysis costs nothing"
        terms = await self.terms.terms(caller, order.business_profile_id, dedup_key=order.dedup_key)
        times = await self.durations.of(order.kind)
        is_cached, checks = (
            NO_FETCH if order.is_fresh else await self._own_result(caller, order, terms.customer)
        )
        return Quote(
            credits=await self.prices.credits(order.analysis_type),
            terms=terms,
            is_cached=is_cached,
            checks=checks,
            eta_s=eta_s(order.analysis_type, times.steps_s, is_cached=is_cached),
            refund=self.refund,
        )

    async def _own_result(self, caller: Caller, order: NewAnalysis, customer: IdealCustomer) -> OwnResult:
        """Uses only the account's own runs: the profile cache would reveal fetches of other accounts."""
        now = self.now()
        for fetch in await self.fetches.fetches(caller, order):
            if judge(fetch, order.analysis_type, now) == "hit":
                return True, fetch.eligibility(customer)
        return NO_FETCH
