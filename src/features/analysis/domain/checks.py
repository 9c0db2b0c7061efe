"""What ends an analysis before any model is asked. It costs the customer nothing."""

from typing import Literal

import msgspec

from features.analysis.domain.facts import facts_of
from features.analysis.domain.ideal_customer import IdealCustomer, Violation
from features.analysis.domain.profile import Scrape

CheckOutcome = Literal["ok", "private", "not_found", "restricted", "icp_violation"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    outcome: CheckOutcome
    violations: tuple[Violation, ...] = ()  # why it is an icp_violation


def verdict_on(scrape: Scrape, customer: IdealCustomer) -> Verdict:
    """In this order: what the look met, privacy, then the bounds of the ideal customer. A private profile
    stays private however few its followers: that is what its visitor can act on.
    """
    if scrape.outcome != "ok":
        return Verdict(outcome=scrape.outcome)
    if scrape.profile is None:
        return Verdict(outcome="not_found")
    if scrape.profile.is_private:
        return Verdict(outcome="private")
    violations = customer.violations(facts_of(scrape.profile, scrape.scraped_at))
    return Verdict(outcome="icp_violation" if violations else "ok", violations=violations)
