"""The way to the till, and what became of it."""

import asyncio
import uuid

import pytest


async def test_the_public_sees_what_is_sold(client):
    offers = (await client.get("/v1/billing/plans")).json()

    assert [plan["name"] for plan in offers["plans"]] == ["free", "growth", "pro", "agency", "enterprise"]
    assert offers["packs"][0] == {
        "name": "small",
        "title": "100 credits",
        "credits": 100,
        "price_cents": 1500,
        "currency": "usd",
    }
    assert offers["plans"][4]["limits"]["business_profiles_max"] is None


async def test_a_paid_pack_brings_its_credits_once(customer):
    before = await customer.credits()
    checkout = await customer.done("/checkout", {"pack": "small"})
    paid = await customer.pay(checkout)

    first, second = [await customer.book.complete_purchase(paid) for _ in range(2)]

    assert (first, second) == (100, 0)
    assert await customer.credits() - before == 100
    followed = (await customer.get(f"/checkouts/{checkout['checkout_id']}")).json()
    assert (followed["status"], followed["credits"]) == ("completed", 100)


async def test_a_checkout_says_where_to_pay_what(customer):
    answer = await customer.post("/checkout", {"plan": "growth"})

    checkout = answer.json()
    assert answer.headers["location"] == f"/v1/billing/checkouts/{checkout['checkout_id']}"
    assert checkout["url"].startswith("http")
    assert (checkout["status"], checkout["plan"], checkout["price_cents"]) == ("open", "growth", 2900)
    assert checkout["expires_at"] > checkout["created_at"]


async def test_whoever_is_at_the_till_for_a_plan_is_sent_there_again(customer):
    checkouts = [await customer.done("/checkout", {"plan": "growth"}) for _ in range(2)]

    assert checkouts[0] == checkouts[1]


async def test_racing_checkouts_for_a_plan_lead_to_one_till(customer):
    answers = await asyncio.gather(*(customer.post("/checkout", {"plan": "growth"}) for _ in range(4)))

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["url"] for answer in answers}) == 1


async def test_a_till_for_another_plan_closes_the_first(customer):
    first = await customer.done("/checkout", {"plan": "growth"})
    await customer.done("/checkout", {"plan": "pro"})

    session = await customer.records.checkout(await customer.session_of(first))

    assert session.status == "expired"
    assert (await customer.get(f"/checkouts/{first['checkout_id']}")).json()["status"] == "expired"


@pytest.mark.parametrize("plan", ["growth", "pro"])
async def test_a_till_where_somebody_has_just_paid_is_not_followed_by_another(customer, plan):
    await customer.pay(await customer.done("/checkout", {"plan": "growth"}))

    answer = await customer.post("/checkout", {"plan": plan})

    assert (answer.status_code, answer.json()["code"]) == (409, "checkout_completed")


async def test_packs_are_bought_side_by_side(customer):
    checkouts = [await customer.done("/checkout", {"pack": "small"}) for _ in range(2)]

    assert checkouts[0]["url"] != checkouts[1]["url"]


async def test_a_repeated_checkout_is_one(customer):
    key = {"Idempotency-Key": uuid.uuid4().hex}

    answers = [await customer.post("/checkout", {"pack": "small"}, **key) for _ in range(2)]

    assert answers[0].json() == answers[1].json()


async def test_a_till_that_a_rival_closed_while_it_opened_is_closed_at_stripe_too(
    application, customer, monkeypatch
):
    orders = application.billing.checkouts.orders
    opened, sessions = type(orders).opened, []

    async def rival(self, checkout, session):
        sessions.append(session.id)
        await self.close(checkout, "expired")
        return await opened(self, checkout, session)

    monkeypatch.setattr(type(orders), "opened", rival)
    answer = await customer.post("/checkout", {"plan": "growth"})

    assert answer.json()["code"] == "checkout_closed"
    assert (await customer.records.checkout(sessions[0])).status == "expired"


@pytest.mark.parametrize("body", [{"plan": "growth"}, {"pack": "small"}])
async def test_a_checkout_that_failed_half_way_is_continued(customer, body):
    key = {"Idempotency-Key": uuid.uuid4().hex}
    await customer.fault("checkout/sessions", 401)

    failed = await customer.post("/checkout", body, **key)
    continued = await customer.post("/checkout", body, **key)

    assert (failed.status_code, failed.json()["code"]) == (503, "payments_unavailable")
    assert continued.status_code == 201
    count = "select count(*) from checkouts where account_id = $1"
    assert await customer.owner.fetchval(count, customer.account_id) == 1


async def test_what_was_made_at_another_stripe_is_made_again(customer, owner):
    await customer.done("/checkout", {"pack": "large"})
    await owner.execute(
        "update billing_prices set stripe_price_id = 'x' || gen_random_uuid() where pack = 'large'"
    )
    await owner.execute(
        "update billing_customers set stripe_customer_id = 'x' || stripe_customer_id where account_id = $1",
        customer.account_id,
    )

    paid = await customer.pay(await customer.done("/checkout", {"pack": "large"}))

    assert (paid.is_paid, paid.account_id) == (True, customer.account_id)


async def test_a_till_that_has_lapsed_at_stripe_is_followed_by_a_new_one(application, customer):
    first = await customer.done("/checkout", {"plan": "growth"})
    await application.billing.checkouts.till.expire_checkout(await customer.session_of(first))

    second = await customer.done("/checkout", {"plan": "growth"})

    assert first["url"] != second["url"]
    assert (await customer.get(f"/checkouts/{first['checkout_id']}")).json()["status"] == "expired"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "order_unclear"),
        ({"plan": "growth", "pack": "small"}, "order_unclear"),
        ({"plan": "platinum"}, "plan_unknown"),
        ({"plan": "free"}, "plan_not_sold"),
        ({"pack": "huge"}, "pack_unknown"),
        ({"pack": "small", "success_url": "https://evil.example/thanks"}, "return_address_foreign"),
        ({"pack": "small", "cancel_url": "http://127.0.0.1:3000@evil.example/"}, "return_address_foreign"),
        ({"pack": "small", "cancel_url": "http://127.0.0.1:3000.evil.example/"}, "return_address_foreign"),
        ({"pack": "small", "cancel_url": "//127.0.0.1:3000/x"}, "return_address_foreign"),
        ({"pack": "small", "cancel_url": "http://127.0.0.1:3000\\@evil.example/"}, "return_address_foreign"),
        ({"pack": "small", "cancel_url": "http://[::1/"}, "return_address_foreign"),
        ({"pack": "small", "cancel_url": "http://127.0.0.1:3000/\nx"}, "return_address_foreign"),
    ],
)
async def test_an_order_that_cannot_be_filled_is_refused(customer, body, code):
    answer = await customer.post("/checkout", body)

    assert (answer.status_code, answer.json()["code"]) == (422, code)


async def test_a_member_without_the_right_role_buys_nothing(customer, bearer, client, owner):
    headers = bearer()
    me = (await client.get("/v1/me", headers=headers)).json()
    await owner.execute(
        "insert into memberships (account_id, user_id, role) values ($1, $2, 'member')",
        *(customer.account_id, uuid.UUID(me["id"])),
    )
    customer.headers = {**headers, "Oslira-Account": str(customer.account_id)}

    answers = [await customer.post("/checkout", {"pack": "small"}), await customer.get("/subscription")]

    assert [answer.status_code for answer in answers] == [403, 403]


async def test_anothers_checkout_does_not_exist(customer, bearer, client):
    checkout = await customer.done("/checkout", {"pack": "small"})

    answer = await client.get(f"/v1/billing/checkouts/{checkout['checkout_id']}", headers=bearer())

    assert (answer.status_code, answer.json()["code"]) == (404, "checkout_not_found")
