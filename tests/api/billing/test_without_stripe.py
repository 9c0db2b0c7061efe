"""Billing without a Stripe key, and the health check after a failed call."""

import dataclasses

import msgspec
import pytest

from core.api.health import HealthCheckFailed
from core.wiring.payments import Payments
from core.wiring.slices.billing import health_check, purchases
from infrastructure.payments.stripe_client import StripeApi


@pytest.fixture
def without_stripe(application, client_of):
    payments = Payments(StripeApi(None), None, application.resources.payments.locks)
    resources = dataclasses.replace(application.resources, payments=payments)
    return client_of(application.replacing(**purchases(resources)))


async def test_checkout_without_a_key_is_not_configured(without_stripe, bearer):
    answer = await without_stripe.post("/v1/billing/checkout", headers=bearer(), json={"pack": "small"})

    assert (answer.status_code, answer.json()["code"]) == (503, "billing_not_configured")


async def test_reads_work_without_a_key(without_stripe, bearer):
    headers = bearer()
    paths = ["plans", "subscription", "invoices"]

    answers = [await without_stripe.get(f"/v1/billing/{path}", headers=headers) for path in paths]

    assert [answer.status_code for answer in answers] == [200] * 3
    assert answers[1].json()["plan"] == "free"


@pytest.mark.parametrize(
    ("environment", "mode", "found"),
    [
        ("local", "simulated", "set STRIPE_SECRET_KEY to use the real provider"),
        ("production", "absent", "purchases are disabled; set STRIPE_SECRET_KEY"),
    ],
)
async def test_health_check_reports_the_stripe_mode(place, environment, mode, found):
    settings = msgspec.structs.replace(place.settings, environment=environment)

    check = health_check(settings, StripeApi(None))

    assert (check.mode, await check.check()) == (mode, found)


async def test_health_check_reports_the_failure_of_the_last_call(place):
    api = StripeApi(None)
    api.failure = "key_refused"
    check = health_check(place.settings, api)

    with pytest.raises(HealthCheckFailed, match="the last call failed: key_refused"):
        await check.check()
