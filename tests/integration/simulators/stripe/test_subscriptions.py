"""Subscriptions that change, renew, fail and end."""

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
    before = await shop.told()
    with pytest.raises(stripe.CardError) as refusal:
        await shop.changed(subscription, shop.pro)

    assert refusal.value.code == "card_declined"
    assert await shop.subscription(subscription.id) == subscription
    assert await shop.told() == before


async def test_a_downgrade_without_an_invoice_is_settled_with_the_next_one(shop):
    subscription = await shop.subscribed(shop.pro)
    await shop.changed(subscription, shop.growth, proration_behavior="create_prorations")
    await shop.advance(days=32)
    renewed = await shop.subscription(subscription.id, "latest_invoice")

    assert [line.amount for line in renewed.latest_invoice.lines.data] == [-9_900, 2_900, 2_900]
    assert renewed.latest_invoice.amount_due == 0
    assert (await shop.client.customers.retrieve_async(shop.customer.id)).balance == -4_100


async def test_a_renewal_is_a_draft_for_an_hour_and_then_paid(shop):
    subscription = await shop.subscribed()
    ends_at = subscription["items"].data[0].current_period_end
    before = len(await shop.told())
    await shop.control("advance", to=ends_at)
    draft = await shop.subscription(subscription.id, "latest_invoice")
    await shop.advance(hours=2)
    invoice = await shop.client.invoices.retrieve_async(draft.latest_invoice.id)

    assert (draft.status, draft["items"].data[0].current_period_start) == ("active", ends_at)
    assert (draft.latest_invoice.status, invoice.status) == ("draft", "paid")
    assert invoice.period_end == invoice.lines.data[0].period.start == ends_at
    assert (await shop.told())[before:] == [
        *("invoice.created", "customer.subscription.updated", "invoice.finalized"),
        *("payment_intent.created", "charge.succeeded", "payment_intent.succeeded"),
        *("invoice.updated", "invoice.paid", "invoice.payment_succeeded"),
    ]


@pytest.mark.parametrize("end", ["canceled", "unpaid"])
async def test_repeatedly_declined_card_ends_the_subscription(shop, end):
    subscription = await shop.subscribed()
    await shop.control("settings", after_retries=end)
    await shop.control("declines", customer=shop.customer.id, times=-1)
    await shop.advance(days=32)
    late = await shop.subscription(subscription.id)
    await shop.advance(days=16)

    assert late.status == "past_due"
    assert (await shop.subscription(subscription.id)).status == end
    assert (await shop.told()).count("invoice.payment_failed") == 4


async def test_successful_retry_makes_the_subscription_active_again(shop):
    subscription = await shop.subscribed()
    await shop.control("declines", customer=shop.customer.id, times=2)
    await shop.advance(days=32)
    late = await shop.subscription(subscription.id)
    with pytest.raises(stripe.CardError):
        await shop.client.invoices.pay_async(late.latest_invoice)
    await shop.advance(days=6)

    assert late.status == "past_due"
    assert (await shop.subscription(subscription.id)).status == "active"


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
    assert (await shop.told()).count("customer.subscription.deleted") == 1


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
        {"items": [{"price": shop.growth}], "proration_behavior": "none"},
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
    await shop.control("advance", to=JANUARY_31)
    subscription = await shop.subscribed()
    ends = []
    for _ in range(3):
        ends.append((await shop.subscription(subscription.id))["items"].data[0].current_period_end)
        await shop.control("advance", to=ends[-1])
    anchor = subscription.billing_cycle_anchor

    assert [(end - anchor) // DAY_S for end in ends] == [28, 59, 89]


async def test_payments_are_returned_by_refund_and_by_dispute(shop):
    first, second = await shop.bought(shop.pack), await shop.bought(shop.pack)
    half = await shop.client.refunds.create_async({"payment_intent": first.payment_intent, "amount": 700})
    rest = await shop.control("refunds", payment=first.payment_intent)
    dispute = await shop.control("disputes", payment=second.payment_intent)
    won = await shop.control(f"disputes/{dispute['id']}/close", is_good=True)
    failed = await shop.control(f"refunds/{half.id}/fail")
    intent = await shop.client.payment_intents.retrieve_async(
        first.payment_intent, {"expand": ["latest_charge.refunds"]}
    )

    assert (half.amount, rest["amount"], dispute["amount"]) == (700, 800, 1_500)
    assert (won["status"], failed["status"]) == ("won", "failed")
    assert intent.latest_charge.amount_refunded == 800
    assert len(intent.latest_charge.refunds.data) == 2
    found = await shop.client.disputes.list_async({"payment_intent": second.payment_intent})
    assert [entry.status for entry in found.data] == ["won"]
    with pytest.raises(stripe.InvalidRequestError):
        await shop.client.refunds.create_async({"payment_intent": first.payment_intent, "amount": 5_000})


async def test_concurrent_purchases_are_all_stored(shop):
    sessions = await asyncio.gather(*(shop.bought(shop.pack) for _ in range(8)))

    assert len({session.payment_intent for session in sessions}) == 8
