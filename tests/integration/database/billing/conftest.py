import uuid

import pytest

from infrastructure.database.billing.subscriptions import PostgresSubscriptionRepository

PRICES = {"growth": 2900, "pro": 9900, "agency": 29900}


@pytest.fixture
def repository(database):
    return PostgresSubscriptionRepository(database.admin("tests"))


@pytest.fixture
async def prices(owner):
    """Stripe's price of each plan, by the plan's name."""
    prices = {plan: f"price_{plan}_{uuid.uuid4().hex}" for plan in PRICES}
    for plan, price_id in prices.items():
        await owner.execute(
            "insert into billing_prices (stripe_price_id, plan, price_cents, currency)"
            " values ($1, $2, $3, 'usd')",
            *(price_id, plan, PRICES[plan]),
        )
    yield prices
    # Stripe does not have these prices, so a later checkout with one of them would fail.
    await owner.execute("delete from billing_prices where stripe_price_id = any ($1)", list(prices.values()))
