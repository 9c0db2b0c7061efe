"""Checkout sessions: paid, declined and expired."""

import pytest
import stripe


async def test_a_pack_is_paid_for_on_a_page(shop):
    session = await shop.checkout(shop.pack, metadata={"checkout_id": "c1"})
    page = (await shop.simulators.http.get(session.url)).text
    thanks = await shop.press(session.url, "pay")
    parts = {"expand": ["payment_intent"]}
    paid = await shop.client.checkout.sessions.retrieve_async(session.id, parts)

    assert (session.status, session.payment_status) == ("open", "unpaid")
    assert "15.00 USD" in page
    assert f"http://127.0.0.1:3000/ok?id={session.id}" in thanks
    assert (paid.status, paid.payment_status, paid.metadata["checkout_id"]) == ("complete", "paid", "c1")
    assert (paid.payment_intent.amount, paid.payment_intent.status) == (1_500, "succeeded")


async def test_pack_has_an_invoice_only_if_requested(shop):
    without = await shop.bought(shop.pack)
    session = await shop.bought(shop.pack, invoice_creation={"enabled": True})

    invoice = await shop.client.invoices.retrieve_async(session.invoice, {"expand": ["payments"]})
    page = await shop.simulators.http.get(invoice.hosted_invoice_url)

    assert without.invoice is None
    assert (invoice.status, invoice.amount_paid, invoice.billing_reason) == ("paid", 1_500, "manual")
    assert invoice.payments.data[0].payment.payment_intent == session.payment_intent
    assert "100 credits" in page.text
    assert (await shop.event_types()).count("invoice.paid") == 1


async def test_second_payment_of_a_session_charges_nothing(shop):
    session = await shop.bought(shop.pack)
    await shop.press(f"{shop.simulators.address}/stripe/pay/{session.id}", "pay")

    assert (await shop.event_types()).count("charge.succeeded") == 1


@pytest.mark.parametrize("product", ["pack", "growth"])
async def test_declined_card_leaves_the_session_open(shop, product):
    session = await shop.checkout(getattr(shop, product))
    by_button = await shop.press(session.url, "decline")
    await shop.control("declines", customer=shop.customer.id)
    by_bank = await shop.press(session.url, "pay")
    open_still = await shop.client.checkout.sessions.retrieve_async(session.id)
    paid = await shop.press(session.url, "pay")

    assert "declined" in by_button
    assert "declined" in by_bank
    assert open_still.status == "open"
    assert "Thank you" in paid


async def test_paid_subscription_is_active(shop):
    session = await shop.bought(shop.growth, subscription_data={"metadata": {"account_id": "a1"}})
    subscription = await shop.subscription(session.subscription)
    parts = {"expand": ["payments"]}
    invoice = await shop.client.invoices.retrieve_async(subscription.latest_invoice, parts)

    assert (subscription.status, subscription.metadata["account_id"]) == ("active", "a1")
    assert (invoice.id, invoice.status, invoice.amount_paid) == (session.invoice, "paid", 2_900)
    assert invoice.payments.data[0].payment.payment_intent.startswith("pi_")
    assert invoice.parent.subscription_details.subscription == subscription.id


async def test_new_subscription_emits_events_in_stripes_order(shop):
    before = len(await shop.event_types())
    await shop.subscribed()

    assert (await shop.event_types())[before:] == [
        *("customer.subscription.created", "invoice.created", "invoice.finalized"),
        *("charge.succeeded", "payment_intent.succeeded"),
        *("invoice.updated", "invoice.paid", "invoice.payment_succeeded"),
        *("customer.subscription.updated", "checkout.session.completed"),
    ]


async def test_session_expires_by_itself_and_by_request(shop):
    forgotten, dropped = await shop.checkout(shop.pack), await shop.checkout(shop.pack)
    expired = await shop.client.checkout.sessions.expire_async(dropped.id)
    await shop.advance(hours=25)
    lapsed = await shop.client.checkout.sessions.retrieve_async(forgotten.id)

    assert (expired.status, lapsed.status, lapsed.url) == ("expired", "expired", None)
    assert (await shop.event_types()).count("checkout.session.expired") == 2
    assert "expired" in await shop.press(forgotten.url, "pay")
    with pytest.raises(stripe.InvalidRequestError):
        await shop.client.checkout.sessions.expire_async(dropped.id)


async def test_user_input_is_escaped_in_html(shop, stripe_client):
    params = {"product_data": {"name": "<b>&"}, "unit_amount": 1, "currency": "usd"}
    price = (await stripe_client.prices.create_async(params)).id
    session = await shop.checkout(price, mode="payment", success_url="javascript:alert(1)")
    page = (await shop.simulators.http.get(session.url)).text

    assert "&lt;b&gt;&amp;" in page
    assert "javascript" not in page + await shop.press(session.url, "pay")


@pytest.mark.parametrize("path", ["pay/cs_test_none", "portal/bps_none", "invoice/in_none"])
async def test_page_of_an_unknown_object_is_not_found(simulators, path):
    assert (await simulators.http.get(f"/stripe/{path}")).status_code == 404
