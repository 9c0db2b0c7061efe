"""What becomes of a call when Stripe does not do what was asked."""

import uuid

import pytest
from structlog.testing import capture_logs

from features.billing.domain.errors import (
    BillingNotConfigured,
    PaymentsRefused,
    PaymentsUnavailable,
    StripeObjectMissing,
)
from infrastructure.payments.stripe_client import API_VERSION, StripeApi
from infrastructure.provider_endpoint import ProviderEndpoint
from tests.support import free_port


@pytest.fixture
async def desk(simulators):
    async def where():
        return ProviderEndpoint(f"{simulators.address}/stripe", "simulated", is_simulated=True)

    desk = StripeApi(where)
    yield desk
    await desk.close()


@pytest.fixture
def impatient(monkeypatch):
    """No pause before another try."""
    monkeypatch.setattr("stripe.HTTPClient.INITIAL_DELAY", 0.0)
    monkeypatch.setattr("stripe.HTTPClient.MAX_DELAY", 0.0)


async def test_the_version_is_the_one_that_the_sdk_was_made_for():
    import stripe  # noqa: PLC0415  half a second

    assert stripe.api_version == API_VERSION


async def test_a_repeated_post_is_one(desk):
    key = uuid.uuid4().hex

    first, second = [await desk.post("/v1/customers", key, email="a@example.com") for _ in range(2)]

    assert first["id"] == second["id"]


async def test_a_key_that_was_used_for_something_else_is_refused(desk):
    key = uuid.uuid4().hex
    await desk.post("/v1/customers", key, email="a@example.com")

    with pytest.raises(PaymentsRefused):
        await desk.post("/v1/customers", key, email="b@example.com")


async def test_what_stripe_does_not_have_is_none(desk):
    assert await desk.find("/v1/subscriptions/sub_nobody") is None
    with pytest.raises(StripeObjectMissing):
        await desk.get("/v1/subscriptions/sub_nobody")
    assert desk.failure is None


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("status", "reason"), [(401, "key_refused"), (429, "rate_limited"), (503, "answered_503")]
)
async def test_what_is_worth_another_try_says_so_without_stripes_words(desk, simulators, status, reason):
    await simulators.fault("/stripe", status=status, times=None)

    with capture_logs() as logs, pytest.raises(PaymentsUnavailable) as refusal:
        await desk.get("/v1/customers/cus_1")

    assert (refusal.value.reason, desk.failure, refusal.value.__cause__) == (reason, reason, None)
    assert [(log["event"], log["path"], log["reason"]) for log in logs] == [
        ("stripe_call_failed", "customers", reason)
    ]


@pytest.mark.usefixtures("impatient")
async def test_a_hiccup_is_nobodys_trouble(desk, simulators):
    await simulators.fault("/stripe", status=503, times=2)

    made = await desk.post("/v1/customers", uuid.uuid4().hex, email="a@example.com")

    assert made["email"] == "a@example.com"


@pytest.mark.usefixtures("impatient")
async def test_nobody_there_is_no_answer():
    address = f"http://127.0.0.1:{free_port()}"

    async def where():
        return ProviderEndpoint(address, "sk_test_secret")

    desk = StripeApi(where)
    with pytest.raises(PaymentsUnavailable, match="no_answer"):
        await desk.get("/v1/customers/cus_1")
    await desk.close()


async def test_without_a_key_every_call_says_so():
    with pytest.raises(BillingNotConfigured):
        await StripeApi(None).get("/v1/customers/cus_1")


async def test_a_list_is_read_to_its_end(desk, monkeypatch):
    monkeypatch.setattr("infrastructure.payments.stripe_client.PAGE_LENGTH", 2)
    made = [
        (await desk.post("/v1/customers", uuid.uuid4().hex, email="a@example.com"))["id"] for _ in range(5)
    ]

    found = [customer["id"] async for customer in desk.pages("/v1/customers")]

    assert found == made[::-1]
