"""Refunds by the merchant and disputes by a bank."""

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected
from simulators.stripe.events.events import emit
from simulators.stripe.http.request import StripeRequest, listed
from simulators.stripe.store import Store, new_id

REFUNDS, DISPUTES = "/v1/refunds", "/v1/disputes"


def create_refund(call: StripeRequest) -> Document:
    charge = paid_charge(call.store, call.form.text("charge") or call.form.needed("payment_intent"))
    cents = call.form.number("amount")
    return refund(call.store, charge, cents, call.form.text("reason"), call.form.changed("metadata", {}))


def paid_charge(store: Store, object_id: str) -> Document:
    """Finds the charge by its id, or by the id of its payment intent."""
    found = store.find(object_id)
    if found is not None and found["object"] == "payment_intent":
        found = store.find(found["latest_charge"] or "")
    if found is None or found["object"] != "charge":
        raise RequestRejected(404, "resource_missing", f"No such charge: '{object_id}'", param="charge")
    if not found["paid"]:
        raise RequestRejected(400, "charge_not_refundable", "This charge was never paid.", param="charge")
    return found


def refund(
    store: Store, charge: Document, cents: int | None, reason: str | None, metadata: Document
) -> Document:
    left: int = charge["amount"] - charge["amount_refunded"]
    cents = left if cents is None else cents
    if left == 0:
        message = f"Charge {charge['id']} has already been refunded."
        raise RequestRejected(400, "charge_already_refunded", message)
    if not 0 < cents <= left:
        message = f"Refund amount ({cents}) is greater than unrefunded amount on charge ({left})."
        raise RequestRejected(400, "amount_too_large", message, param="amount")
    given: Document = {
        "id": new_id("re"),
        "object": "refund",
        "amount": cents,
        "balance_transaction": new_id("txn"),
        "charge": charge["id"],
        "created": store.now(),
        "currency": charge["currency"],
        "customer": charge["customer"],
        "metadata": metadata,
        "payment_intent": charge["payment_intent"],
        "reason": reason,
        "receipt_number": None,
        "status": "succeeded",
    }
    charge["amount_refunded"] += cents
    charge["refunded"] = charge["amount_refunded"] == charge["amount"]
    store.put(given)
    store.put(charge)
    emit(store, "refund.created", given)
    emit(store, "charge.refunded", charge, amount_refunded=charge["amount_refunded"] - cents)
    return given


def fail_refund(store: Store, refund_id: str) -> Document:
    """Marks the refund as failed: the bank rejected it days later, and the merchant has the money again."""
    given = store.get(refund_id, "refund")
    if given["status"] == "failed":
        raise RequestRejected(400, "refund_failed", "This refund has failed already.")
    charge = store.get(given["charge"], "charge")
    charge |= {"amount_refunded": charge["amount_refunded"] - given["amount"], "refunded": False}
    given |= {"status": "failed", "failure_reason": "lost_or_stolen_card"}
    store.put(charge)
    emit(store, "refund.updated", store.put(given), status="succeeded")
    emit(store, "charge.refund.updated", given, status="succeeded")
    emit(store, "refund.failed", given)
    return given


def retrieve_refund(call: StripeRequest) -> Document:
    return call.store.get(call.id, "refund")


def list_refunds(call: StripeRequest) -> Document:
    return listed(call, "refund", REFUNDS, equal=("charge", "payment_intent"))


def open_dispute(store: Store, charge: Document, cents: int | None, reason: str) -> Document:
    if charge["disputed"]:
        raise RequestRejected(400, "charge_disputed", "This charge is disputed already.")
    dispute: Document = {
        "id": new_id("dp"),
        "object": "dispute",
        "amount": charge["amount"] if cents is None else cents,
        "balance_transactions": [],
        "charge": charge["id"],
        "created": store.now(),
        "currency": charge["currency"],
        "evidence_details": {"due_by": store.now() + 7 * 86_400, "has_evidence": False},
        "is_charge_refundable": False,
        "livemode": False,
        "metadata": {},
        "payment_intent": charge["payment_intent"],
        "reason": reason,
        "status": "needs_response",
    }
    store.put({**charge, "disputed": True})
    emit(store, "charge.dispute.created", store.put(dispute))
    emit(store, "charge.dispute.funds_withdrawn", dispute)
    return dispute


def end_dispute(store: Store, dispute_id: str, *, is_won: bool) -> Document:
    dispute = store.get(dispute_id, "dispute")
    if dispute["status"] in {"won", "lost"}:
        raise RequestRejected(400, "dispute_closed", "This dispute is closed already.")
    before, dispute["status"] = dispute["status"], "won" if is_won else "lost"
    emit(store, "charge.dispute.closed", store.put(dispute), status=before)
    if is_won:
        emit(store, "charge.dispute.funds_reinstated", dispute)
    return dispute


def close_dispute(call: StripeRequest) -> Document:
    """Closes the dispute as lost, as Stripe does when the merchant closes it."""
    return end_dispute(call.store, call.id, is_won=False)


def retrieve_dispute(call: StripeRequest) -> Document:
    return call.store.get(call.id, "dispute")


def list_disputes(call: StripeRequest) -> Document:
    return listed(call, "dispute", DISPUTES, equal=("charge", "payment_intent"))
