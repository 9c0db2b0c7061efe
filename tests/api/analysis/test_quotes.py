"""Quotes: a dry run states price and limits, and starts nothing."""

import uuid
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from features.analysis.domain.analysis import LeadKey
from features.runs.domain.refunds import REFUND_POLICY
from infrastructure.database.leads.leads import PostgresAnalysisResults
from tests.fakes.profile_reader import scrape_of
from tests.unit.features.analysis.examples import analysis, profile

DRY = "?dry_run=true"


@pytest.fixture
def name():
    return f"ann{uuid.uuid4().hex[:12]}"


@pytest.fixture
def fetched_elsewhere(application, name):
    """A function that caches the profile as if another account had just fetched it."""

    async def keep(**facts):
        scrape = msgspec.structs.replace(scrape_of(name, **facts), scraped_at=datetime.now(UTC))
        await application.resources.providers.profiles.cache.save(name, scrape)

    return keep


@pytest.fixture
def analysed(owner, account, business, name):
    """A function that saves a completed analysis of the profile for the account."""

    async def save(analysis_type="deep", *, age=timedelta(), account_id=account):
        key = LeadKey(account_id=account_id, business_profile_id=business, username=name)
        at = datetime.now(UTC) - age
        made = analysis(key, analysis_type, of=profile(username=name, followers_count=1_000), at=at)
        await PostgresAnalysisResults(owner).save(made)

    return save


@pytest.fixture
def refused(owner, account, business, name):
    """A function that ends a run of the account with this outcome."""

    async def end(outcome, *, analysis_type="deep", age=timedelta(), business_id=business):
        order = {"username": name, "type": analysis_type, "business_profile_id": business_id}
        at = datetime.now(UTC) - age
        await owner.execute(
            "insert into runs (account_id, id, kind, status, subject, outcome, error, engine_id,"
            " created_at, ended_at) values ($1, $2, $3, 'failed', $4, $5, $5, 'ended', $6, $6)",
            *(account, uuid.uuid4(), f"{analysis_type}_analysis", msgspec.json.encode(order).decode()),
            *(outcome, at),
        )

    return end


@pytest.fixture
async def choosy(client, headers):
    """A business that excludes small profiles."""
    answer = await client.post(
        "/v1/business-profiles",
        headers=headers,
        json={"name": "Alpine Coffee", "ideal_customer": {"followers_min": 5_000}},
    )
    return answer.json()["id"]


async def test_quote_states_the_price_and_the_plan_and_writes_nothing(analyse, name, runs_of, credits_of):
    answer = await analyse(name, query=DRY)

    assert answer.status_code == 200
    assert "location" not in answer.headers
    quote = answer.json()
    policy = quote.pop("refund_policy")
    assert quote == {
        "credits": 5,
        "credits_available": 25,
        "is_affordable": True,
        "is_duplicate": False,
        "duplicate_run_id": None,
        "is_cached": False,
        "checks": None,
        "eta_s": 20,
        "plan": {
            "name": "pro",
            "runs_at_once": 5,
            "runs_at_work": 0,
            "light_per_hour": 150,
            "bulk_max": 100,
        },
    }
    assert (policy["version"], policy["url"]) == (2, "/v1/refund-policy")
    assert policy["rules"] == [msgspec.to_builtins(rule) for rule in REFUND_POLICY.rules]
    minima = {rule["outcome"]: rule["credits_charged_min"] for rule in policy["rules"]}
    assert {outcome for outcome, minimum in minima.items() if minimum == 1} == {"cancelled_saving"}
    assert await runs_of() == []
    assert await credits_of() == (25, 0)


async def test_quote_shows_the_run_in_progress(analyse, name):
    run_id = (await analyse(name)).json()["run_id"]

    quote = (await analyse(name, query=DRY)).json()

    assert (quote["is_duplicate"], quote["duplicate_run_id"]) == (True, run_id)
    assert quote["plan"]["runs_at_work"] == 1


async def test_too_expensive_analysis_is_affordable_only_while_already_paid_for(analyse, name):
    for number in range(4):
        await analyse(f"profile{number}")
    await analyse(name)

    assert (await analyse("nasa", query=DRY)).json()["is_affordable"] is False
    assert (await analyse(name, query=DRY)).json()["is_affordable"] is True


@pytest.mark.parametrize("outcome", ["ok", "private", "not_found", "restricted"])
async def test_quote_does_not_show_what_another_account_fetched(analyse, name, fetched_elsewhere, outcome):
    before = (await analyse(name, query=DRY)).json()
    await fetched_elsewhere(outcome=outcome, **({"posts": 12} if outcome == "ok" else {}))

    assert (await analyse(name, query=DRY)).json() == before


async def test_quote_does_not_show_an_analysis_of_another_account(
    analyse, client, bearer, name, analysed, refused
):
    await analysed()
    await refused("private")
    stranger = bearer()
    body = {"name": "Valley Tea", "ideal_customer": {"followers_min": 5_000}}
    business = (await client.post("/v1/business-profiles", headers=stranger, json=body)).json()["id"]

    quote = (await analyse(name, query=DRY, sender=stranger, business_profile_id=business)).json()

    assert (quote["is_cached"], quote["checks"], quote["eta_s"]) == (False, None, 20)


async def test_quote_shows_what_the_account_fetched(analyse, name, analysed):
    await analysed()

    quote = (await analyse(name, query=DRY)).json()

    assert (quote["is_cached"], quote["eta_s"]) == (True, 12)
    assert quote["checks"] == {"outcome": "ok", "violations": []}


async def test_quote_does_not_change_when_another_account_fetches_later(
    analyse, name, analysed, fetched_elsewhere
):
    await analysed()
    before = (await analyse(name, query=DRY)).json()
    await fetched_elsewhere(outcome="private")

    assert (await analyse(name, query=DRY)).json() == before


async def test_quote_of_a_fresh_analysis_shows_no_earlier_fetch(analyse, name, analysed):
    await analysed()

    quote = (await analyse(name, query=DRY, is_fresh=True)).json()

    assert (quote["is_cached"], quote["checks"], quote["eta_s"]) == (False, None, 20)


@pytest.mark.parametrize(
    ("fetched", "asked", "age", "is_cached"),
    [
        ("deep", "light", timedelta(hours=23), True),
        ("deep", "deep", timedelta(hours=13), False),
    ],
)
async def test_own_fetch_counts_while_it_is_deep_and_recent_enough(
    analyse, name, analysed, fetched, asked, age, is_cached
):
    await analysed(fetched, age=age)

    assert (await analyse(name, query=DRY, type=asked)).json()["is_cached"] is is_cached


async def test_quote_lists_violations_of_the_ideal_customer(analyse, name, analysed, choosy):
    await analysed()

    quote = (await analyse(name, query=DRY, business_profile_id=choosy)).json()

    assert quote["checks"] == {
        "outcome": "icp_violation",
        "violations": [{"name": "followers_below_min", "found": 1_000.0, "limit": 5_000.0}],
    }


@pytest.mark.parametrize("outcome", ["private", "not_found", "restricted", "icp_violation"])
async def test_quote_shows_how_the_accounts_last_run_was_refused(analyse, name, analysed, refused, outcome):
    await analysed(age=timedelta(minutes=30))
    await refused(outcome)

    quote = (await analyse(name, query=DRY)).json()

    assert (quote["is_cached"], quote["checks"]) == (True, {"outcome": outcome, "violations": []})


async def test_violation_is_not_shown_for_another_business_or_after_a_change(
    analyse, client, headers, name, refused, choosy
):
    await refused("icp_violation", business_id=choosy)
    assert (await analyse(name, query=DRY)).json()["checks"] is None

    changed = {"ideal_customer": {"followers_min": 1}}
    at = {**headers, "If-Match": '"1"'}
    answer = await client.patch(f"/v1/business-profiles/{choosy}", headers=at, json=changed)
    assert answer.status_code == 200, answer.text

    assert (await analyse(name, query=DRY, business_profile_id=choosy)).json()["checks"] is None
