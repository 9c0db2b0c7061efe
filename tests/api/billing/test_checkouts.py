"""Checkouts of plans and packs."""

import asyncio
import uuid

import pytest


async def test_offers_are_public(client):
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


async def test_paid_pack_grants_its_credits_once(customer):
    before = await customer.credits()
    checkout = await customer.done("/checkout", {"pack": "small"})
    paid = await customer.pay(checkout)

    first, second = [await customer.repository.complete_purchase(paid) for _ in range(2)]

    assert (first, second) == (100, 0)
    assert await customer.credits() - before == 100
    followed = (await customer.get(f"/checkouts/{checkout['checkout_id']}")).json()
    assert (followed["status"], followed["credits"]) == ("completed", 100)


async def test_checkout_response_has_url_price_and_location(customer):
    answer = await customer.post("/checkout", {"plan": "growth"})

    checkout = answer.json()
    assert answer.headers["location"] == f"/v1/billing/checkouts/{checkout['checkout_id']}"
    assert checkout["url"].startswith("http")
    assert (checkout["status"], checkout["plan"], checkout["price_cents"]) == ("open", "growth", 2900)
    assert checkout["expires_at"] > checkout["created_at"]


async def test_second_checkout_for_a_plan_returns_the_open_one(customer):
    checkouts = [await customer.done("/checkout", {"plan": "growth"}) for _ in range(2)]

    assert checkouts[0] == checkouts[1]


async def test_concurrent_checkouts_for_a_plan_share_one_session(customer):
    answers = await asyncio.gather(*(customer.post("/checkout", {"plan": "growth"}) for _ in range(4)))

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["url"] for answer in answers}) == 1


async def test_checkout_for_another_plan_expires_the_first(customer):
    first = await customer.done("/checkout", {"plan": "growth"})
    await customer.done("/checkout", {"plan": "pro"})

    session = await customer.stripe_reader.checkout(await customer.session_of(first))

    assert session.status == "expired"
    assert (await customer.get(f"/checkouts/{first['checkout_id']}")).json()["status"] == "expired"


@pytest.mark.parametrize("plan", ["growth", "pro"])
async def test_checkout_is_refused_while_a_paid_one_is_not_yet_applied(customer, plan):
    await customer.pay(await customer.done("/checkout", {"plan": "growth"}))

    answer = await customer.post("/checkout", {"plan": plan})

    assert (answer.status_code, answer.json()["code"]) == (409, "checkout_completed")


async def test_two_pack_checkouts_are_open_at_once(customer):
    checkouts = [await customer.done("/checkout", {"pack": "small"}) for _ in range(2)]

    assert checkouts[0]["url"] != checkouts[1]["url"]


async def test_checkout_is_idempotent_by_key(customer):
    key = {"Idempotency-Key": uuid.uuid4().hex}

    answers = [await customer.post("/checkout", {"pack": "small"}, **key) for _ in range(2)]

    assert answers[0].json() == answers[1].json()


async def test_session_is_expired_at_stripe_if_its_checkout_was_closed_concurrently(
    application, customer, monkeypatch
):
    orders = application.dependencies["checkouts"].orders
    opened, sessions = type(orders).opened, []

    async def rival(self, checkout, session):
        sessions.append(session.id)
        await self.close(checkout, "expired")
        return await opened(self, checkout, session)

    monkeypatch.setattr(type(orders), "opened", rival)
    answer = await customer.post("/checkout", {"plan": "growth"})

    assert answer.json()["code"] == "checkout_closed"
    assert (await customer.stripe_reader.checkout(sessions[0])).status == "expired"


@pytest.mark.parametrize("body", [{"plan": "growth"}, {"pack": "small"}])
async def test_interrupted_checkout_is_continued_by_a_retry(customer, body):
    key = {"Idempotency-Key": uuid.uuid4().hex}
    await customer.fault("checkout/sessions", 401)

    failed = await customer.post("/checkout", body, **key)
    continued = await customer.post("/checkout", body, **key)

    assert (failed.status_code, failed.json()["code"]) == (503, "payments_unavailable")
    assert continued.status_code == 201
    count = "select count(*) from checkouts where account_id = $1"
    assert await customer.owner.fetchval(count, customer.account_id) == 1


async def test_customer_and_price_of_another_stripe_account_are_recreated(customer, owner):
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


async def test_session_expired_at_stripe_is_replaced_by_a_new_one(application, customer):
    first = await customer.done("/checkout", {"plan": "growth"})
    await application.dependencies["checkouts"].checkout_provider.expire_checkout(
        await customer.session_of(first)
    )

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
async def test_invalid_order_is_refused(customer, body, code):
    answer = await customer.post("/checkout", body)

    assert (answer.status_code, answer.json()["code"]) == (422, code)


async def test_member_role_cannot_buy_or_read_billing(customer, bearer, client, owner):
    headers = bearer()
    me = (await client.get("/v1/me", headers=headers)).json()
    await owner.execute(
        "insert into memberships (account_id, user_id, role) values ($1, $2, 'member')",
        *(customer.account_id, uuid.UUID(me["id"])),
    )
    customer.headers = {**headers, "Oslira-Account": str(customer.account_id)}

    answers = [await customer.post("/checkout", {"pack": "small"}), await customer.get("/subscription")]

    assert [answer.status_code for answer in answers] == [403, 403]


async def test_checkout_of_another_account_is_not_found(customer, bearer, client):
    checkout = await customer.done("/checkout", {"pack": "small"})

    answer = await client.get(f"/v1/billing/checkouts/{checkout['checkout_id']}", headers=bearer())

    assert (answer.status_code, answer.json()["code"]) == (404, "checkout_not_found")
