"""Conventions of the API: idempotency keys, pagination, versions, errors."""

import pytest
import stripe


async def test_repeated_idempotency_key_returns_the_same_response(shop):
    options = {"idempotency_key": "once"}
    first = await shop.client.customers.create_async({"email": "b@example.com"}, options)
    second = await shop.client.customers.create_async({"email": "b@example.com"}, options)
    found = await shop.client.customers.list_async({"email": "b@example.com"})

    assert first.id == second.id
    assert second.last_response.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.last_response.headers
    assert len(found.data) == 1


async def test_idempotency_key_of_another_request_is_rejected(shop):
    options = {"idempotency_key": "other"}
    await shop.client.customers.create_async({"email": "c@example.com"}, options)

    with pytest.raises(stripe.IdempotencyError):
        await shop.client.customers.create_async({"email": "d@example.com"}, options)


async def test_card_decline_is_stored_under_its_key_and_other_errors_are_not(shop):
    subscription = await shop.subscribed()
    await shop.control("declines", customer=shop.customer.id)
    for _ in range(2):
        with pytest.raises(stripe.CardError):
            await shop.client.subscriptions.update_async(
                subscription.id,
                {
                    "items": [{"id": subscription["items"].data[0].id, "price": shop.pro}],
                    "proration_behavior": "always_invoice",
                    "payment_behavior": "error_if_incomplete",
                },
                {"idempotency_key": "upgrade"},
            )
    upgraded = await shop.changed(subscription, shop.pro)
    options, params = {"idempotency_key": "price"}, {"product_data": {"name": "X"}, "currency": "usd"}
    with pytest.raises(stripe.InvalidRequestError):
        await shop.client.prices.create_async(params, options)

    assert upgraded["items"].data[0].price.id == shop.pro
    assert (await shop.client.prices.create_async({**params, "unit_amount": 5}, options)).unit_amount == 5


async def test_lists_are_paginated_newest_first(shop):
    made = [(await shop.client.customers.create_async({"name": str(number)})).id for number in range(5)]
    first = await shop.client.customers.list_async({"limit": 2})
    everything = [customer.id async for customer in first.auto_paging_iter()]

    assert [customer.id for customer in first.data] == [made[4], made[3]]
    assert first.has_more
    assert everything[:5] == made[::-1]


async def test_prices_are_found_by_a_unique_lookup_key(shop):
    params = {"product_data": {"name": "P"}, "unit_amount": 5, "currency": "usd", "lookup_key": "k"}
    price = await shop.client.prices.create_async(params)
    with pytest.raises(stripe.InvalidRequestError):
        await shop.client.prices.create_async(params)
    found = await shop.client.prices.list_async({"lookup_keys": ["k", "none"]})

    assert [one.id for one in found.data] == [price.id]


@pytest.mark.parametrize("version", ["2024-06-20", "newest"])
async def test_unknown_api_version_is_rejected(shop, version):
    headers = {"authorization": "Bearer simulated", "stripe-version": version}
    response = await shop.simulators.http.get("/stripe/v1/customers", headers=headers)

    assert (response.status_code, response.json()["error"]["code"]) == (400, "parameter_invalid")


async def test_internal_fields_are_never_sent(shop):
    subscription = await shop.subscribed()
    page = (
        await shop.simulators.http.get(
            "/stripe/v1/events?limit=100", headers={"authorization": "Bearer simulated"}
        )
    ).text

    assert subscription.id in page
    assert '"_' not in page


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "customers/cus_none", 404, "resource_missing"),
        ("GET", "customers?limit=0", 400, "parameter_invalid_integer"),
        ("GET", "customers?limit=many", 400, "parameter_invalid_integer"),
        ("GET", "customers?starting_after=cus_none", 404, "resource_missing"),
        ("GET", "customers?expand[]=nothing", 400, "parameter_invalid"),
        ("POST", "checkout/sessions", 400, "parameter_missing"),
        ("DELETE", "events", 404, "url_unknown"),
    ],
)
async def test_errors_have_stripes_status_and_code(shop, method, path, status, code):
    headers = {"authorization": "Bearer simulated"}
    answer = await shop.simulators.http.request(method, f"/stripe/v1/{path}", headers=headers)

    assert (answer.status_code, answer.json().get("error", {}).get("code")) == (status, code)


async def test_call_without_a_key_is_rejected(simulators):
    answer = await simulators.http.get("/stripe/v1/customers")

    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "api_key_missing")


async def test_fault_has_stripes_error_format(shop):
    await shop.simulators.fault("/stripe/v1/customers", status=500, code="lock_timeout")
    with pytest.raises(stripe.APIError) as failure:
        await shop.client.customers.retrieve_async(shop.customer.id)

    assert failure.value.json_body["error"]["code"] == "lock_timeout"
    assert await shop.simulators.asked("GET /stripe/v1/customers/{id}") == 1
