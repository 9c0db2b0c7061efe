"""Plan changes, cancellation and resumption over HTTP, through Stripe's SDK."""

import asyncio
import dataclasses
import uuid

import pytest

from features.billing.domain.errors import PaymentsUnavailable

SIGN_UP_CREDITS = 25


async def test_paid_checkout_activates_the_plan_and_grants_its_credits(customer):
    before = await customer.credits()

    await customer.subscribe("growth")

    subscription = await customer.subscription()
    assert (subscription["plan"], subscription["status"], subscription["is_paid_plan"]) == (
        "growth",
        "active",
        True,
    )
    assert subscription["credits_granted"] == 250
    assert await customer.credits() - before == 250


async def test_upgrade_costs_the_previewed_amount_and_grants_the_difference(subscriber):
    before = await subscriber.credits()
    preview = await subscriber.done("/change-plan/preview", {"plan": "pro"})

    changed = await subscriber.done("/change-plan", {"plan": "pro", "preview_id": preview["preview_id"]})

    assert (preview["direction"], preview["credits_now"], preview["credits_monthly"]) == (
        "upgrade",
        1250,
        1500,
    )
    assert 0 < preview["due_now_cents"] <= 9900 - 2900
    assert (changed["plan"], changed["credits_granted"]) == ("pro", 1500)
    assert await subscriber.credits() - before == 1250
    assert await paid_last(subscriber) == preview["due_now_cents"]


async def paid_last(customer):
    subscription_id = await customer.owner.fetchval(
        "select stripe_subscription_id from subscriptions where account_id = $1 and clock = 'stripe'",
        customer.account_id,
    )
    snapshot = await customer.stripe_reader.subscription(subscription_id)
    return (await customer.stripe_reader.invoice(snapshot.latest_invoice_id)).paid_cents


async def test_stripes_event_of_an_upgrade_changes_nothing_more(customer):
    subscription_id = await customer.subscribe("growth")
    await customer.change("pro")
    before = await customer.credits()

    applied = await customer.hear(subscription_id)

    assert (applied.outcome, applied.credits_granted) == ("done", 0)
    assert await customer.credits() == before


async def test_upgrade_with_a_declined_card_changes_nothing(subscriber):
    before = await subscriber.credits()
    await subscriber.decline()

    answer = await subscriber.change("pro")

    assert (answer.status_code, answer.json()["code"]) == (402, "payment_failed")
    assert (await subscriber.subscription())["plan"] == "growth"
    assert await subscriber.credits() == before


async def test_upgrade_succeeds_after_a_declined_card(subscriber):
    await subscriber.decline()
    await subscriber.change("pro")

    answer = await subscriber.change("pro")

    assert (answer.status_code, answer.json()["plan"]) == (200, "pro")


async def test_downgrade_is_planned_for_the_end_of_the_period(subscriber):
    preview = await subscriber.done("/change-plan/preview", {"plan": "pro"})
    await subscriber.done("/change-plan", {"plan": "pro", "preview_id": preview["preview_id"]})
    before = await subscriber.credits()

    answer = await subscriber.change("growth")

    changed = answer.json()
    assert (changed["plan"], changed["next_plan"], changed["plan_in_force"]) == ("pro", "growth", "pro")
    assert await subscriber.credits() == before


async def test_the_preview_of_a_downgrade_costs_nothing_now(customer):
    await customer.subscribe("pro")

    preview = await customer.done("/change-plan/preview", {"plan": "growth"})

    assert (preview["direction"], preview["due_now_cents"], preview["credits_now"]) == ("downgrade", 0, 0)
    assert preview["effective_at"] == (await customer.subscription())["period_end"]


async def test_planned_downgrade_can_be_replaced_and_resumed(customer):
    await customer.subscribe("agency")

    first = (await customer.change("growth")).json()["next_plan"]
    second = (await customer.change("pro")).json()["next_plan"]
    resumed = await customer.done("/resume")

    assert (first, second, resumed["next_plan"]) == ("growth", "pro", None)


async def test_upgrade_removes_a_planned_downgrade(customer):
    await customer.subscribe("pro")
    await customer.change("growth")

    changed = (await customer.change("agency")).json()

    assert (changed["plan"], changed["next_plan"]) == ("agency", None)


async def test_declined_upgrade_removes_the_planned_downgrade(customer):
    await customer.subscribe("pro")
    await customer.change("growth")
    await customer.decline()

    answer = await customer.change("agency")

    assert answer.status_code == 402
    assert (await customer.subscription())["next_plan"] is None


async def test_cancelled_subscription_ends_with_its_period_and_can_be_resumed(subscriber):
    cancelled = await subscriber.done("/cancel")
    resumed = await subscriber.done("/resume")

    assert cancelled["cancels_at"] == cancelled["period_end"]
    assert (cancelled["plan"], cancelled["status"]) == ("growth", "active")
    assert resumed["cancels_at"] is None


async def test_cancellation_removes_a_planned_downgrade(customer):
    await customer.subscribe("pro")
    await customer.change("growth")

    cancelled = await customer.done("/cancel")

    assert (cancelled["next_plan"], cancelled["cancels_at"]) == (None, cancelled["period_end"])


async def test_requests_that_conflict_with_the_subscription_are_refused(subscriber):
    subscribed = [
        (await subscriber.post("/checkout", {"plan": "pro"})).json()["code"],
        (await subscriber.post("/change-plan/preview", {"plan": "growth"})).json()["code"],
        (await subscriber.post("/change-plan/preview", {"plan": "free"})).json()["code"],
        (await subscriber.post("/change-plan/preview", {"plan": "platinum"})).json()["code"],
        (await subscriber.post("/resume")).json()["code"],
    ]
    await subscriber.done("/cancel")
    cancelled = [
        (await subscriber.post("/cancel")).json()["code"],
        (await subscriber.post("/change-plan/preview", {"plan": "pro"})).json()["code"],
    ]

    assert subscribed == [
        "already_subscribed",
        "plan_unchanged",
        "plan_not_sold",
        "plan_unknown",
        "nothing_to_resume",
    ]
    assert cancelled == ["already_cancelled", "cancellation_pending"]


async def test_changes_without_a_paid_plan_are_refused(customer):
    paths = [("/change-plan/preview", {"plan": "pro"}), ("/cancel", None), ("/resume", None), ("/portal", {})]
    codes = [(await customer.post(path, body)).json()["code"] for path, body in paths]

    assert codes == ["no_subscription"] * 4


async def test_preview_expires_after_another_change(subscriber):
    preview = await subscriber.done("/change-plan/preview", {"plan": "agency"})
    await subscriber.change("pro")

    answer = await subscriber.post("/change-plan", {"plan": "agency", "preview_id": preview["preview_id"]})

    assert (answer.status_code, answer.json()["code"]) == (409, "preview_expired")


async def test_preview_of_another_plan_is_rejected(subscriber):
    preview = await subscriber.done("/change-plan/preview", {"plan": "pro"})

    answer = await subscriber.post("/change-plan", {"plan": "agency", "preview_id": preview["preview_id"]})

    assert answer.json()["code"] == "preview_expired"


async def test_upgrade_minutes_after_the_preview_costs_the_previewed_amount(subscriber):
    preview = await subscriber.done("/change-plan/preview", {"plan": "enterprise"})
    await subscriber.control.post("/advance", json={"seconds": 300})

    await subscriber.done("/change-plan", {"plan": "enterprise", "preview_id": preview["preview_id"]})

    assert await paid_last(subscriber) == preview["due_now_cents"]


async def test_plan_change_is_idempotent_by_key(subscriber):
    before = await subscriber.credits()
    preview = await subscriber.done("/change-plan/preview", {"plan": "pro"})
    body = {"plan": "pro", "preview_id": preview["preview_id"]}
    key = {"Idempotency-Key": uuid.uuid4().hex}

    answers = [await subscriber.post("/change-plan", body, **key) for _ in range(2)]

    assert [answer.json()["plan"] for answer in answers] == ["pro", "pro"]
    assert await subscriber.credits() - before == 1250


async def test_portal_returns_stripes_url(subscriber):
    answer = await subscriber.post("/portal", {})

    assert answer.status_code == 201
    assert answer.json()["url"].startswith("http")


class ReadsBeforeWrites:
    """SubscriptionProvider that processes an event before each write, after the change has begun."""

    def __init__(self, subscription_provider, process_event):
        self._terms, self._process_event = subscription_provider, process_event

    def __getattr__(self, name):
        async def write(*arguments, **options):
            await self._process_event()
            return await getattr(self._terms, name)(*arguments, **options)

        return write


@pytest.mark.parametrize(
    ("plan", "steps", "expected"),
    [
        ("growth", ["change:pro"], ("pro", None, False)),
        ("pro", ["change:growth"], ("pro", "growth", False)),
        ("pro", ["change:growth", "/resume"], ("pro", None, False)),
        ("pro", ["/cancel"], ("pro", None, True)),
        ("pro", ["/cancel", "/resume"], ("pro", None, False)),
    ],
)
async def test_change_is_shown_although_an_event_is_processed_concurrently(
    application, client_of, customer, plan, steps, expected
):
    subscription_id = await customer.subscribe(plan)
    changes = application.dependencies["changes"]
    subscription_provider = ReadsBeforeWrites(
        changes.subscription_provider, lambda: customer.hear(subscription_id)
    )
    changes = dataclasses.replace(changes, subscription_provider=subscription_provider)
    customer.http = client_of(application.replacing(changes=changes))

    for step in steps:
        name, _, target = step.partition(":")
        answer = await (customer.change(target) if target else customer.post(name))

    shown = answer.json()
    assert (shown["plan"], shown["next_plan"], shown["cancels_at"] is not None) == expected


class ResponseLost:
    """SubscriptionProvider whose upgrade succeeds at Stripe but loses the response."""

    def __init__(self, subscription_provider):
        self._terms, self.lost = subscription_provider, 0

    def __getattr__(self, name):
        return getattr(self._terms, name)

    async def upgrade(self, *arguments, **options):
        await self._terms.upgrade(*arguments, **options)
        self.lost += 1
        raise PaymentsUnavailable(reason="no_answer")


async def test_retry_of_an_interrupted_upgrade_returns_the_new_plan(application, client_of, subscriber):
    before = await subscriber.credits()
    preview = await subscriber.done("/change-plan/preview", {"plan": "pro"})
    body, key = {"plan": "pro", "preview_id": preview["preview_id"]}, {"Idempotency-Key": uuid.uuid4().hex}
    changes = application.dependencies["changes"]
    subscription_provider = ResponseLost(changes.subscription_provider)
    changes = dataclasses.replace(changes, subscription_provider=subscription_provider)
    subscriber.http = client_of(application.replacing(changes=changes))

    answers = [await subscriber.post("/change-plan", body, **key) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [503, 200]
    assert (answers[1].json()["plan"], subscription_provider.lost) == ("pro", 1)
    assert await subscriber.credits() - before == 1250
    assert await paid_last(subscriber) == preview["due_now_cents"]


BURST = ("pro", "agency", "enterprise")


@pytest.mark.parametrize("count", [2, 18])
async def test_one_of_several_concurrent_changes_is_made(subscriber, count):
    before = await subscriber.credits()
    plans = [BURST[place % len(BURST)] for place in range(count)]
    previews = [await subscriber.done("/change-plan/preview", {"plan": plan}) for plan in plans]
    bodies = [
        {"plan": plan, "preview_id": shown["preview_id"]} for plan, shown in zip(plans, previews, strict=True)
    ]

    answers = await asyncio.gather(*(subscriber.post("/change-plan", body) for body in bodies))

    (done,) = [place for place, answer in enumerate(answers) if answer.status_code == 200]
    refused = {answer.json()["code"] for place, answer in enumerate(answers) if place != done}
    assert refused <= {"preview_expired", "plan_unchanged"}
    assert (await subscriber.subscription())["plan"] == plans[done]
    assert await subscriber.credits() - before == previews[done]["credits_now"]
    assert await paid_last(subscriber) == previews[done]["due_now_cents"]


async def test_change_is_refused_when_stripes_price_is_not_the_previewed_one(customer):
    subscription_id = await customer.subscribe("growth")
    preview = await customer.done("/change-plan/preview", {"plan": "agency"})
    prices = await customer.owner.fetchval("select stripe_price_id from billing_prices where plan = 'pro'")
    found = await customer.stripe_reader.subscription(subscription_id)
    await customer.resources.payments.api.post(
        f"/v1/subscriptions/{subscription_id}",
        f"by hand {subscription_id}",
        items=[{"id": found.item_id, "price": prices}],
    )

    answer = await customer.post("/change-plan", {"plan": "agency", "preview_id": preview["preview_id"]})

    assert (answer.status_code, answer.json()["code"]) == (409, "preview_expired")
    assert (await customer.stripe_reader.subscription(subscription_id)).price_id == prices
    assert (await customer.subscription())["plan"] == "pro"
