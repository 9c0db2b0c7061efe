"""A dry run tells what would happen, and nothing does."""

import uuid
from datetime import UTC, datetime

import msgspec
import pytest

from features.runs.domain.refunds import REFUND_POLICY
from tests.features.analysis.looks import look_at

DRY = "?dry_run=true"


@pytest.fixture
def name():
    return f"ann{uuid.uuid4().hex[:12]}"


@pytest.fixture
def seen(application, name):
    """A function: somebody has just looked at the profile."""

    async def keep(**facts):
        scrape = msgspec.structs.replace(look_at(name, **facts), scraped_at=datetime.now(UTC))
        await application.profiles.known.keep(name, scrape)

    return keep


@pytest.fixture
async def choosy(client, headers):
    """A business that wants nobody small."""
    answer = await client.post(
        "/v1/business-profiles",
        headers=headers,
        json={"name": "Alpine Coffee", "ideal_customer": {"followers_min": 5_000}},
    )
    return answer.json()["id"]


async def test_a_quote_tells_the_price_and_the_plan_and_writes_nothing(analyse, name, runs_of, credits_of):
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


async def test_a_quote_tells_of_the_run_in_progress(analyse, name):
    run_id = (await analyse(name)).json()["run_id"]

    quote = (await analyse(name, query=DRY)).json()

    assert (quote["is_duplicate"], quote["duplicate_run_id"]) == (True, run_id)
    assert quote["plan"]["runs_at_work"] == 1


async def test_what_is_too_dear_is_not_affordable_unless_it_is_paid_for(analyse, name):
    for number in range(4):
        await analyse(f"somebody{number}")
    await analyse(name)

    assert (await analyse("nasa", query=DRY)).json()["is_affordable"] is False
    assert (await analyse(name, query=DRY)).json()["is_affordable"] is True


async def test_what_is_known_from_a_look_is_told(analyse, name, seen):
    await seen(posts=12)

    quote = (await analyse(name, query=DRY)).json()

    assert (quote["is_cached"], quote["eta_s"]) == (True, 12)
    assert quote["checks"] == {"outcome": "ok", "violations": []}


async def test_a_look_that_is_to_be_taken_anew_tells_nothing(analyse, name, seen):
    await seen(posts=12)

    quote = (await analyse(name, query=DRY, is_fresh=True)).json()

    assert (quote["is_cached"], quote["checks"], quote["eta_s"]) == (False, None, 20)


async def test_whoever_is_no_ideal_customer_is_told_before_it_costs_anything(analyse, name, seen, choosy):
    await seen(posts=12)

    quote = (await analyse(name, query=DRY, business_profile_id=choosy)).json()

    assert quote["checks"] == {
        "outcome": "icp_violation",
        "violations": [{"name": "followers_below_min", "found": 1_000.0, "limit": 5_000.0}],
    }


@pytest.mark.parametrize("outcome", ["private", "not_found", "restricted"])
async def test_a_profile_that_cannot_be_analysed_is_told(analyse, name, seen, outcome):
    await seen(outcome=outcome)

    quote = (await analyse(name, query=DRY)).json()

    assert quote["checks"] == {"outcome": outcome, "violations": []}
