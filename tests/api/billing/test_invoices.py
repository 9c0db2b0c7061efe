import uuid
from datetime import timedelta

from features.billing.domain.stripe_snapshots import ReversalSnapshot
from tests.support.stripe_snapshots import STARTED_AT, invoice


async def test_invoices_come_in_pages_newest_first(customer):
    for days in range(3):
        one = invoice(number=f"A-{days}", created_at=STARTED_AT + timedelta(days=days))
        await customer.repository.save_invoice(customer.account_id, one, STARTED_AT)

    first = (await customer.get("/invoices?limit=2")).json()
    second = (await customer.get(f"/invoices?limit=2&cursor={first['next_cursor']}")).json()

    assert [item["number"] for item in first["items"] + second["items"]] == ["A-2", "A-1", "A-0"]
    assert second["next_cursor"] is None


async def test_an_account_without_invoices_has_an_empty_list(customer):
    assert (await customer.get("/invoices")).json() == {"items": [], "next_cursor": None}


async def test_invoice_shows_the_refunded_amount(customer):
    repository, payment_id = customer.repository, f"pi_{uuid.uuid4().hex}"
    paid = invoice(status="paid", paid_cents=2900, payment_id=payment_id)
    await repository.save_invoice(customer.account_id, paid, STARTED_AT)
    await repository.record_payment(
        customer.account_id,
        payment_id,
        grant_reference="x",
        credits=250,
        paid_cents=2900,
        currency="usd",
    )
    await repository.reverse_payment(
        ReversalSnapshot(id=f"re_{payment_id}", payment_id=payment_id, returned_cents=900, status="succeeded")
    )

    (item,) = (await customer.get("/invoices")).json()["items"]

    assert (item["paid_cents"], item["refunded_cents"]) == (2900, 900)
