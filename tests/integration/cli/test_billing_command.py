"""Tests of oslira billing: purchases, plans and invoices."""

import pytest

from core.cli.client.checkout import is_simulated
from features.billing.controllers.schemas import (
    CheckoutResponse,
    PreviewResponse,
    SubscriptionResponse,
)
from features.billing.domain.subscriptions import Invoice
from features.credits.domain.ledger import Balance
from tests.integration.cli.responses import RUN_ID, example
from tests.support.scripted_server import http

OFFERS = {
    "plans": [
        {"name": "free", "title": "Free", "monthly_credits": 10, "price_cents": 0, "currency": "usd"},
        {"name": "pro", "title": "Pro", "monthly_credits": 1_500, "price_cents": 9_900, "currency": "usd"},
    ],
    "packs": [
        {"name": "small", "title": "100 credits", "credits": 100, "price_cents": 1_500, "currency": "usd"}
    ],
}
SUBSCRIPTION = example(
    SubscriptionResponse,
    plan="pro",
    status="active",
    price_cents=9_900,
    currency="usd",
    monthly_credits=1_500,
)
PREVIEW = example(
    PreviewResponse, preview_id="pv_1", plan="pro", due_now_cents=7_000, currency="usd", credits_now=1_250
)
INVOICE = example(
    Invoice,
    number="A-0001",
    due_cents=2_900,
    currency="usd",
    hosted_url="https://invoice.example/1",
)


def balance(credits_available):
    return http(200, example(Balance, credits_available=credits_available))


def checkout(url, status="open"):
    facts = {"credits": 100, "price_cents": 1_500, "currency": "usd"}
    return http(201, example(CheckoutResponse, **facts, status=status, url=url))


def purchase(url, *, before, after):
    """Responses of a server and its simulated checkout page to a purchase that is paid."""
    till = f"{url}/stripe/pay/cs_1"
    paid = http(200, b"<p>Paid. Thank you.</p>")
    open_still, done = checkout(till), checkout(till, "completed")
    return balance(before), checkout(till), paid, open_still, done, balance(after)


async def test_plans_and_packs_are_listed_with_prices(oslira, server):
    server.script(http(200, OFFERS))
    result = await oslira("billing", "plans")

    assert result.exit_code == 0
    for said in ("1,500", "99.00 USD", "free", "small", "15.00 USD"):
        assert said in result.output


@pytest.mark.parametrize(("command", "what"), [("buy", "pack"), ("subscribe", "plan")])
async def test_purchase_prints_the_checkout_url(oslira, server, command, what):
    server.script(checkout("https://checkout.stripe.com/c/pay/cs_1"))
    result = await oslira("billing", command, "small")

    assert "Pay 15.00 USD here:\nhttps://checkout.stripe.com/c/pay/cs_1\n" in result.output
    assert server.asked[0].json == {what: "small"}


async def test_paying_waits_until_the_credits_are_there(oslira, server):
    looked, opened, *rest = purchase(server.url, before=20, after=120)
    server.script(opened, looked, *rest)
    result = await oslira("billing", "buy", "small", "--pay")

    assert "20 before, 120 now" in result.output
    assert [asked.path for asked in server.asked][2:5] == [
        "/stripe/pay/cs_1",
        f"/v1/billing/checkouts/{RUN_ID}",
        f"/v1/billing/checkouts/{RUN_ID}",
    ]


async def test_pay_option_is_rejected_for_real_money(oslira, server):
    server.script(checkout("https://checkout.stripe.com/c/pay/cs_1"), balance(20))
    result = await oslira("billing", "buy", "small", "--pay")

    assert result.exit_code == 1
    assert "real money" in result.output


async def test_failed_payment_is_an_error(oslira, server):
    till = f"{server.url}/stripe/pay/cs_1"
    server.script(checkout(till), balance(20), http(200, b"Your card was declined."))
    result = await oslira("billing", "buy", "small", "--pay")

    assert result.exit_code == 1
    assert "payment was declined" in result.output


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:9000/stripe/pay/cs_1", True),
        ("http://localhost:9000/stripe/pay/cs_1", True),
        ("https://checkout.stripe.com/stripe/pay/cs_1", False),
        ("http://127.0.0.1.example.com/stripe/pay/cs_1", False),
        ("http://127.0.0.1:9000/other", False),
        ("http://[::1", False),
        ("", False),
    ],
)
def test_only_a_checkout_page_on_this_machine_is_simulated(url, expected):
    assert is_simulated(url) is expected


async def test_subscription_is_shown_with_its_next_state(oslira, server):
    server.script(http(200, {**SUBSCRIPTION, "next_plan": "growth", "cancels_at": "2026-12-16T00:00:00Z"}))
    result = await oslira("billing", "subscription")

    lines = [line.replace("│", " ").split() for line in result.output.splitlines()]
    assert ["monthly", "credits", "1,500"] in lines
    assert ["price", "99.00", "USD"] in lines
    assert ["next", "plan", "growth"] in lines
    assert ["cancels", "2026-12-16", "00:00:00"] in lines


async def test_confirmed_change_sends_the_id_of_its_preview(oslira, server):
    server.script(http(200, PREVIEW), http(200, SUBSCRIPTION))
    result = await oslira("billing", "change", "pro", given="y\n")

    assert all(text in result.output for text in ("70.00 USD", "1,250"))
    assert server.asked[1].json == {"plan": "pro", "preview_id": "pv_1"}


async def test_a_change_that_is_not_agreed_to_is_not_made(oslira, server):
    smaller = {**PREVIEW, "plan": "growth", "direction": "downgrade", "due_now_cents": 0}
    server.script(http(200, smaller))
    result = await oslira("billing", "change", "growth", given="n\n")

    assert "0.00 USD" in result.output
    assert (result.exit_code, len(server.asked)) == (1, 1)


@pytest.mark.parametrize("verb", ["cancel", "resume"])
async def test_cancel_and_resume_are_sent_to_the_server(oslira, server, verb):
    server.script(http(200, SUBSCRIPTION))
    result = await oslira("billing", verb)

    assert (result.exit_code, server.asked[0].path) == (0, f"/v1/billing/{verb}")


async def test_invoices_are_listed_with_their_urls(oslira, server):
    server.script(http(200, {"items": [INVOICE], "next_cursor": None}))
    listed = await oslira("billing", "invoices")
    server.script(http(200, {"items": [], "next_cursor": None}))
    none = await oslira("billing", "invoices")

    for said in ("A-0001", "2026-01-01", "29.00 USD", "https://invoice.example/1"):
        assert said in listed.output
    assert "No invoices" in none.output
