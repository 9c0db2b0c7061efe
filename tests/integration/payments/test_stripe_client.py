"""Errors, retries, idempotency and pagination of the Stripe client."""

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
async def api(simulators):
    async def where():
        return ProviderEndpoint(f"{simulators.address}/stripe", "simulated", is_simulated=True)

    api = StripeApi(where)
    yield api
    await api.close()


@pytest.fixture
def impatient(monkeypatch):
    """Retries without backoff."""
    monkeypatch.setattr("stripe.HTTPClient.INITIAL_DELAY", 0.0)
    monkeypatch.setattr("stripe.HTTPClient.MAX_DELAY", 0.0)


async def test_api_version_matches_the_sdk():
    import stripe  # noqa: PLC0415  the import takes half a second

    assert stripe.api_version == API_VERSION


async def test_post_is_idempotent_by_key(api):
    key = uuid.uuid4().hex

    first, second = [await api.post("/v1/customers", key, email="a@example.com") for _ in range(2)]

    assert first["id"] == second["id"]


async def test_idempotency_key_with_another_body_is_refused(api):
    key = uuid.uuid4().hex
    await api.post("/v1/customers", key, email="a@example.com")

    with pytest.raises(PaymentsRefused):
        await api.post("/v1/customers", key, email="b@example.com")


async def test_find_returns_none_and_get_raises_for_an_unknown_id(api):
    assert await api.find("/v1/subscriptions/sub_unknown") is None
    with pytest.raises(StripeObjectMissing):
        await api.get("/v1/subscriptions/sub_unknown")
    assert api.failure is None


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("status", "reason"), [(401, "key_refused"), (429, "rate_limited"), (503, "answered_503")]
)
async def test_retryable_failure_is_unavailable_without_stripes_text(api, simulators, status, reason):
    await simulators.fault("/stripe", status=status, times=None)

    with capture_logs() as logs, pytest.raises(PaymentsUnavailable) as refusal:
        await api.get("/v1/customers/cus_1")

    assert (refusal.value.reason, api.failure, refusal.value.__cause__) == (reason, reason, None)
    assert [(log["event"], log["path"], log["reason"]) for log in logs] == [
        ("stripe_call_failed", "customers", reason)
    ]


@pytest.mark.usefixtures("impatient")
async def test_short_failure_is_retried(api, simulators):
    await simulators.fault("/stripe", status=503, times=2)

    made = await api.post("/v1/customers", uuid.uuid4().hex, email="a@example.com")

    assert made["email"] == "a@example.com"


@pytest.mark.usefixtures("impatient")
async def test_refused_connection_is_reported_as_no_answer():
    address = f"http://127.0.0.1:{free_port()}"

    async def where():
        return ProviderEndpoint(address, "sk_test_secret")

    api = StripeApi(where)
    with pytest.raises(PaymentsUnavailable, match="no_answer"):
        await api.get("/v1/customers/cus_1")
    await api.close()


async def test_call_without_a_key_raises_billing_not_configured():
    with pytest.raises(BillingNotConfigured):
        await StripeApi(None).get("/v1/customers/cus_1")


async def test_pages_returns_every_item_of_a_list(api, monkeypatch):
    monkeypatch.setattr("infrastructure.payments.stripe_client.PAGE_LENGTH", 2)
    made = [
        (await api.post("/v1/customers", uuid.uuid4().hex, email="a@example.com"))["id"] for _ in range(5)
    ]

    found = [customer["id"] async for customer in api.pages("/v1/customers")]

    assert found == made[::-1]
