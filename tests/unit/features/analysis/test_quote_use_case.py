"""Quotes with fakes behind their ports."""

import uuid
from datetime import timedelta

import pytest
from msgspec.structs import replace

from features.analysis.application.quotes import Quotes, RefundTerms
from features.analysis.domain.eligibility import Eligibility, OwnFetch
from features.analysis.domain.profile.facts import facts_of
from features.analysis.domain.requests import NewAnalysis
from features.analysis.domain.scoring.ideal_customer import IdealCustomer, Violation
from shared.caller import Caller
from tests.fakes.analysis_runs import FakeAccountState
from tests.support import NOON
from tests.unit.features.analysis.examples import profile

CALLER = Caller(id=uuid.UUID(int=2), claims="{}", chosen_account=uuid.UUID(int=1))
ORDER = NewAnalysis(username="natgeo", analysis_type="deep", business_profile_id=uuid.UUID(int=4))
REFUND = RefundTerms(version=2, rules=())


def fetch(analysis_type="deep", *, outcome="ok", age=timedelta()):
    facts = facts_of(profile(followers_count=1_000), NOON) if outcome == "ok" else None
    return OwnFetch(analysis_type=analysis_type, outcome=outcome, scraped_at=NOON - age, facts=facts)


@pytest.fixture
def account():
    return FakeAccountState()


@pytest.fixture
def quotes(account):
    return Quotes(account, account, account, account, REFUND, lambda: NOON)


async def test_quote_states_price_quotas_and_refund_policy(quotes, account):
    quote = await quotes.quote(CALLER, ORDER)

    assert (quote.credits, quote.terms, quote.refund) == (5, account.quotas, REFUND)
    assert (quote.is_cached, quote.checks, quote.eta_s) == (False, None, 20)
    assert account.dedup_keys == [ORDER.dedup_key]


@pytest.mark.parametrize(
    ("credits_available", "duplicate_run_id", "is_affordable"),
    [(5, None, True), (4, None, False), (0, uuid.UUID(int=9), True)],
    ids=["enough", "too few", "already paid for"],
)
async def test_analysis_is_affordable_with_its_price_or_while_it_is_in_progress(
    quotes, account, credits_available, duplicate_run_id, is_affordable
):
    account.quotas = replace(
        account.quotas, credits_available=credits_available, duplicate_run_id=duplicate_run_id
    )

    assert (await quotes.quote(CALLER, ORDER)).is_affordable is is_affordable


async def test_own_fetch_is_shown_and_shortens_the_estimate(quotes, account):
    account.own_fetches = [fetch()]
    account.steps_s = (("scrape", 8.0), ("core", 3.0))

    quote = await quotes.quote(CALLER, ORDER)

    assert (quote.is_cached, quote.checks, quote.eta_s) == (True, Eligibility(outcome="ok"), 3)


async def test_quote_of_a_fresh_analysis_ignores_own_fetches(quotes, account):
    account.own_fetches = [fetch()]

    quote = await quotes.quote(CALLER, replace(ORDER, is_fresh=True))

    assert (quote.is_cached, quote.checks, quote.eta_s) == (False, None, 20)


@pytest.mark.parametrize(
    ("fetched", "requested", "hours", "is_cached"),
    [
        ("deep", "light", 23, True),
        ("light", "deep", 0, False),
        ("deep", "deep", 13, False),
        ("xray", "deep", 11, True),
    ],
)
async def test_own_fetch_counts_while_it_is_deep_and_recent_enough(
    quotes, account, fetched, requested, hours, is_cached
):
    account.own_fetches = [fetch(fetched, age=timedelta(hours=hours))]

    quote = await quotes.quote(CALLER, replace(ORDER, analysis_type=requested))

    assert quote.is_cached is is_cached


async def test_own_fetch_is_compared_with_the_current_ideal_customer(quotes, account):
    account.own_fetches = [fetch()]
    account.quotas = replace(account.quotas, customer=IdealCustomer(followers_min=5_000))

    checks = (await quotes.quote(CALLER, ORDER)).checks

    violation = Violation(name="followers_below_min", found=1_000, limit=5_000)
    assert checks == Eligibility(outcome="icp_violation", violations=(violation,))


@pytest.mark.parametrize("outcome", ["private", "not_found", "restricted", "icp_violation"])
async def test_newest_own_fetch_decides(quotes, account, outcome):
    account.own_fetches = [fetch(outcome=outcome), fetch(age=timedelta(minutes=30))]

    assert (await quotes.quote(CALLER, ORDER)).checks == Eligibility(outcome=outcome)


async def test_expired_fetch_is_skipped_for_an_older_one_that_is_still_valid(quotes, account):
    account.own_fetches = [
        fetch(outcome="private", age=timedelta(minutes=61)),
        fetch(age=timedelta(minutes=90)),
    ]

    assert (await quotes.quote(CALLER, ORDER)).checks == Eligibility(outcome="ok")
