import uuid

import pytest

from features.billing.application.catalog import Catalog
from features.billing.application.checkouts import Checkouts
from features.billing.application.plan_changes import PlanChanges
from shared.caller import Caller
from tests.fakes.billing import FakeBilling, FakeStripeWrites
from tests.fakes.stripe import FakeStripe
from tests.support.stripe_snapshots import subscription

FRONTEND = "https://app.example"


@pytest.fixture
def caller():
    return Caller(id=uuid.UUID(int=2), claims="{}", email="ada@example.com")


@pytest.fixture
def billing():
    return FakeBilling()


@pytest.fixture
def stripe():
    return FakeStripe()


@pytest.fixture
def writes(stripe):
    return FakeStripeWrites(stripe)


@pytest.fixture
def subscriber(stripe):
    """An account that is subscribed to growth, here and at Stripe."""
    stripe.by_id["sub_1"] = subscription("price_growth", id="sub_1")
    return FakeBilling("growth", customer_id="cus_1")


@pytest.fixture
def checkouts(billing, writes, stripe):
    return Checkouts(billing, billing, Catalog(billing, writes), writes, stripe, FRONTEND)


@pytest.fixture
def changes(subscriber, writes, stripe):
    return PlanChanges(subscriber, Catalog(subscriber, writes), stripe, writes, subscriber, subscriber)
