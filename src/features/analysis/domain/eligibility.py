"""Checks that end an analysis before any prompt is sent, at no charge."""

from datetime import datetime
from typing import Literal

import msgspec

from features.analysis.domain.profile.facts import Facts, facts_of
from features.analysis.domain.profile.profile import POSTS_NEEDED, Scrape
from features.analysis.domain.scoring.ideal_customer import IdealCustomer, Violation
from shared.ids import AnalysisType

CheckOutcome = Literal["ok", "private", "not_found", "restricted", "icp_violation"]


class Eligibility(msgspec.Struct, frozen=True, kw_only=True):
    outcome: CheckOutcome
    violations: tuple[Violation, ...] = ()  # set when the outcome is icp_violation


def check_eligibility(scrape: Scrape, customer: IdealCustomer) -> Eligibility:
    """Checks the scrape's outcome, then privacy, then the ideal customer's bounds. A private profile is
    reported as private even if it also violates a bound, because privacy is what the caller can act on.
    """
    if scrape.outcome != "ok":
        return Eligibility(outcome=scrape.outcome)
    if scrape.profile is None:
        return Eligibility(outcome="not_found")
    if scrape.profile.is_private:
        return Eligibility(outcome="private")
    return _by_bounds(facts_of(scrape.profile, scrape.scraped_at), customer)


class OwnFetch(msgspec.Struct, frozen=True, kw_only=True):
    """A profile as fetched by one of the account's own runs."""

    analysis_type: AnalysisType
    outcome: CheckOutcome
    scraped_at: datetime
    facts: Facts | None = None  # of a completed analysis

    @property
    def posts_asked(self) -> int:
        return POSTS_NEEDED[self.analysis_type]

    def eligibility(self, customer: IdealCustomer) -> Eligibility:
        return _by_bounds(self.facts, customer) if self.facts else Eligibility(outcome=self.outcome)


def _by_bounds(facts: Facts, customer: IdealCustomer) -> Eligibility:
    violations = customer.violations(facts)
    return Eligibility(outcome="icp_violation" if violations else "ok", violations=violations)
