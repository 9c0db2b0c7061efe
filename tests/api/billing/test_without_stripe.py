"""Billing without a Stripe key, and the health check after a failed call."""

import dataclasses

import msgspec
import pytest

from core.api.health import HealthCheckFailed
from core.wiring.billing import billing_on
from core.wiring.health_checks import payment_probe
from core.wiring.payments import Payments
from infrastructure.payments.stripe_client import StripeApi


@pytest.fixture
def without_stripe(application, client_of):
    payments = Payments(StripeApi(None), None, application.foundation.payments.locks)
    foundation = dataclasses.replace(application.foundation, payments=payments)
    return client_of(dataclasses.replace(application, billing=billing_on(foundation)))


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
        ("local", "simulated", "set STRIPE_SECRET_KEY for the real one"),
        ("production", "absent", "nothing can be bought; set STRIPE_SECRET_KEY"),
    ],
)
async def test_health_check_reports_the_stripe_mode(place, environment, mode, found):
    settings = msgspec.structs.replace(place.settings, environment=environment)

    told_mode, probe = payment_probe(settings, StripeApi(None))["stripe"]

    assert (told_mode, await probe()) == (mode, found)


async def test_health_check_reports_the_failure_of_the_last_call(place):
    api = StripeApi(None)
    api.failure = "key_refused"
    _, probe = payment_probe(place.settings, api)["stripe"]

    with pytest.raises(HealthCheckFailed, match="the last call failed: key_refused"):
        await probe()
