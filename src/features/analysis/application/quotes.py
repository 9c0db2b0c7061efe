"""What an analysis would cost, and what is known about it before anything is done."""

from dataclasses import dataclass

import msgspec

from features.analysis.application.ports import Durations, Prices, Terms, TermsReader
from features.analysis.application.profiles import Profiles, ReadProfile
from features.analysis.domain.checks import Verdict
from features.analysis.domain.errors import ProfileIsPrivate, ProfileNotFound, ProfileRestricted
from features.analysis.domain.estimates import eta_s
from features.analysis.domain.facts import facts_of
from features.analysis.domain.ideal_customer import IdealCustomer
from features.analysis.domain.orders import AnalysisOrder
from shared.caller import Caller


class RefundTerm(msgspec.Struct, frozen=True, kw_only=True):
    outcome: str
    percent_charged: int
    explanation: str
    credits_charged_min: int


class RefundTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The runs slice's policy, as it is promised with a quote."""

    version: int
    rules: tuple[RefundTerm, ...]


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """``checks``: what would end the analysis for free, as far as it is known without a look."""

    credits: int
    terms: Terms
    is_cached: bool
    checks: Verdict | None
    eta_s: int
    refund: RefundTerms

    @property
    def is_affordable(self) -> bool:
        """Who asks for what is in progress does not pay again."""
        return self.terms.credits_available >= self.credits or self.terms.duplicate_run_id is not None


@dataclass(frozen=True, slots=True)
class Quotes:
    """Nothing is written, nobody is looked at."""

    terms: TermsReader
    prices: Prices
    profiles: Profiles
    durations: Durations
    refund: RefundTerms

    async def quote(self, caller: Caller, order: AnalysisOrder) -> Quote:
        assert order.business_profile_id is not None, "visitors pay nothing"
        terms = await self.terms.terms(caller, order.business_profile_id, dedup_key=order.dedup_key)
        times = await self.durations.of(order.kind)
        is_cached, checks = (False, None) if order.is_fresh else await self._known(order, terms.customer)
        return Quote(
            credits=await self.prices.credits(order.analysis_type),
            terms=terms,
            is_cached=is_cached,
            checks=checks,
            eta_s=eta_s(order.analysis_type, times.steps_s, is_cached=is_cached),
            refund=self.refund,
        )

    async def _known(self, order: AnalysisOrder, customer: IdealCustomer) -> tuple[bool, Verdict | None]:
        try:
            read = await self.profiles.peek(order.username, order.analysis_type)
        except ProfileIsPrivate:
            return True, Verdict(outcome="private")
        except ProfileNotFound:
            return True, Verdict(outcome="not_found")
        except ProfileRestricted:
            return True, Verdict(outcome="restricted")
        return read is not None, read and _verdict(read, customer)


def _verdict(read: ReadProfile, customer: IdealCustomer) -> Verdict:
    violations = customer.violations(facts_of(read.profile, read.scraped_at))
    return Verdict(outcome="icp_violation" if violations else "ok", violations=violations)
