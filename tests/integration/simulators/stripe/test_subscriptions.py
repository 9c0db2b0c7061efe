"""Subscriptions that change, renew and end, and reversals of payments."""

import asyncio

import pytest
import stripe

DAY_S = 86_400
JANUARY_31 = 1_801_353_600  # of 2027, at midnight


async def previewed(shop, subscription, price):
    details = {
        "items": [{"id": subscription["items"].data[0].id, "price": price}],
        "proration_behavior": "always_invoice",
    }
    params = {"subscription": subscription.id, "subscription_details": details}
    return await shop.client.invoices.create_preview_async(params)


async def test_upgrade_costs_the_rest_of_the_period_as_previewed(shop):
    subscription = await shop.subscribed()
    await shop.advance(days=10)
    preview = await previewed(shop, subscription, shop.pro)
    changed = await shop.changed(subscription, shop.pro, expand=["latest_invoice"])
    item = changed["items"].data[0]
    share = (item.current_period_end - preview.created) / (
        item.current_period_end - item.current_period_start
    )

    assert preview.amount_due == round(9_900 * share) - round(2_900 * share)
    assert abs(changed.latest_invoice.amount_paid - preview.amount_due) <= 1
    assert (changed.latest_invoice.billing_reason, item.price.id) == ("subscription_update", shop.pro)
    assert item.current_period_end == subscription["items"].data[0].current_period_end


async def test_declined_upgrade_changes_nothing(shop):
    subscription = await shop.subscribed()
    await shop.control("declines", customer=shop.customer.id)
    before = await shop.event_types()
    with pytest.raises(stripe.CardError) as refusal:
        await shop.changed(subscription, shop.pro)

    assert refusal.value.code == "card_declined"
    assert await shop.subscription(subscription.id) == subscription
    assert await shop.event_types() == before


async def test_renewal_is_a_draft_for_an_hour_and_then_paid(shop):
    subscription = await shop.subscribed()
    ends_at = subscription["items"].data[0].current_period_end
    before = len(await shop.event_types())
    await shop.advance_to(ends_at)
    draft = await shop.subscription(subscription.id, "latest_invoice")
    await shop.advance(hours=2)
    invoice = await shop.client.invoices.retrieve_async(draft.latest_invoice.id)

    assert (draft.status, draft["items"].data[0].current_period_start) == ("active", ends_at)
    assert (draft.latest_invoice.status, invoice.status) == ("draft", "paid")
    assert invoice.lines.data[0].period.start == ends_at
    assert (await shop.event_types())[before:] == [
        *("invoice.created", "customer.subscription.updated", "invoice.finalized"),
        *("charge.succeeded", "payment_intent.succeeded"),
        *("invoice.updated", "invoice.paid", "invoice.payment_succeeded"),
    ]


async def test_declined_renewal_makes_the_subscription_past_due(shop):
    subscription = await shop.subscribed()
    await shop.control("declines", customer=shop.customer.id)
    await shop.advance(days=32)
    late = await shop.subscription(subscription.id, "latest_invoice")

    assert (late.status, late.latest_invoice.status) == ("past_due", "open")
    assert (await shop.event_types()).count("invoice.payment_failed") == 1


async def test_cancelled_subscription_ends_with_its_period_unless_resumed(shop):
    client = shop.client.subscriptions
    kept, ending = await shop.subscribed(), await shop.subscribed()
    for subscription in (kept, ending):
        await client.update_async(subscription.id, {"cancel_at_period_end": True})
    resumed = await client.update_async(kept.id, {"cancel_at_period_end": False})
    await shop.advance(days=32)
    ended = await shop.subscription(ending.id)

    assert (resumed.cancel_at, (await shop.subscription(kept.id)).status) == (None, "active")
    assert (ended.status, ended.ended_at) == ("canceled", ending["items"].data[0].current_period_end)
    assert (await shop.event_types()).count("customer.subscription.deleted") == 1


async def test_immediately_cancelled_subscription_has_ended_and_cannot_change(shop):
    subscription = await shop.subscribed()
    ended = await shop.client.subscriptions.cancel_async(subscription.id)

    assert ended.status == "canceled"
    assert (await shop.client.subscriptions.list_async({"customer": shop.customer.id})).data == []
    everything = {"customer": shop.customer.id, "status": "all"}
    assert len((await shop.client.subscriptions.list_async(everything)).data) == 1
    with pytest.raises(stripe.InvalidRequestError):
        await shop.changed(subscription, shop.pro)


async def test_schedule_applies_the_smaller_plan_with_the_next_period(shop):
    subscription = await shop.subscribed(shop.pro)
    schedules = shop.client.subscription_schedules
    schedule = await schedules.create_async({"from_subscription": subscription.id})
    now = schedule.phases[0]
    phases = [
        {"start_date": now.start_date, "end_date": now.end_date, "items": [{"price": shop.pro}]},
        {"items": [{"price": shop.growth}], "duration": {"interval": "month", "interval_count": 1}},
    ]
    await schedules.update_async(schedule.id, {"end_behavior": "release", "phases": phases})
    waiting = await shop.subscription(subscription.id, "schedule")
    await shop.advance(days=32)
    smaller = await shop.subscription(subscription.id, "latest_invoice")
    await shop.advance(days=31)

    assert waiting.schedule.phases[1]["items"][0].price == shop.growth
    assert (smaller["items"].data[0].price.id, smaller.latest_invoice.amount_paid) == (shop.growth, 2_900)
    assert (await shop.subscription(subscription.id)).schedule is None


async def test_active_schedule_rejects_a_cancellation_and_can_be_released(shop):
    subscription = await shop.subscribed(shop.pro)
    schedules = shop.client.subscription_schedules
    schedule = await schedules.create_async({"from_subscription": subscription.id})
    with pytest.raises(stripe.InvalidRequestError):
        await shop.client.subscriptions.update_async(subscription.id, {"cancel_at_period_end": True})
    released = await schedules.release_async(schedule.id)

    assert released.status == "released"
    assert (await shop.subscription(subscription.id)).schedule is None


async def test_portal_cancels_and_resumes(shop):
    subscription = await shop.subscribed()
    params = {"customer": shop.customer.id, "return_url": "http://127.0.0.1:3000/"}
    portal = await shop.client.billing_portal.sessions.create_async(params)
    page = await shop.press(portal.url, "cancel")
    ending = await shop.subscription(subscription.id)
    await shop.press(portal.url, "resume")

    assert "Keep it" in page
    assert (ending.cancel_at_period_end, ending.cancel_at is not None) == (True, True)
    assert not (await shop.subscription(subscription.id)).cancel_at_period_end


async def test_anchor_on_the_31st_is_limited_to_the_last_day_of_the_month(shop):
    await shop.advance_to(JANUARY_31)
    subscription = await shop.subscribed()
    ends = []
    for _ in range(3):
        ends.append((await shop.subscription(subscription.id))["items"].data[0].current_period_end)
        await shop.advance_to(ends[-1])
    anchor = subscription.billing_cycle_anchor

    assert [(end - anchor) // DAY_S for end in ends] == [28, 59, 89]


async def test_payments_are_returned_by_refund_and_by_dispute(shop):
    first, second = await shop.bought(shop.pack), await shop.bought(shop.pack)
    part = await shop.client.refunds.create_async({"payment_intent": first.payment_intent, "amount": 700})
    rest = await shop.control("refunds", payment=first.payment_intent)
    dispute = await shop.control("disputes", payment=second.payment_intent)
    await shop.control(f"disputes/{dispute['id']}/close", is_won=True)
    refunds = await shop.client.refunds.list_async({"payment_intent": first.payment_intent})

    assert (part.amount, rest["amount"], dispute["amount"]) == (700, 800, 1_500)
    assert len(refunds.data) == 2
    assert (await shop.client.disputes.retrieve_async(dispute["id"])).status == "won"


@pytest.mark.parametrize(("amount", "code"), [(5_000, "amount_too_large"), (None, "charge_already_refunded")])
async def test_refund_of_more_than_was_paid_is_rejected(shop, amount, code):
    session = await shop.bought(shop.pack)
    params = {"payment_intent": session.payment_intent}
    if amount is None:
        await shop.client.refunds.create_async(params)

    with pytest.raises(stripe.InvalidRequestError) as rejected:
        await shop.client.refunds.create_async(params | ({"amount": amount} if amount else {}))

    assert rejected.value.code == code


async def test_concurrent_purchases_are_all_stored(shop):
    sessions = await asyncio.gather(*(shop.bought(shop.pack) for _ in range(8)))

    assert len({session.payment_intent for session in sessions}) == 8
