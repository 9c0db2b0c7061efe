"""Fixtures for billing over HTTP, with Stripe's SDK connected to the simulated Stripe."""

import uuid

import pytest

from tests.api.billing.customers import Customer


@pytest.fixture
async def customer(application, client, bearer, stripe_control, owner):
    headers = bearer()
    balance = (await client.get("/v1/credits/balance", headers=headers)).json()
    account_id = uuid.UUID(balance["account_id"])
    return Customer(client, headers, account_id, application.resources, stripe_control, owner)


@pytest.fixture
async def subscriber(customer):
    await customer.subscribe("growth")
    return customer
