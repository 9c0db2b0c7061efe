"""Routing table of the operations."""

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected
from simulators.stripe.events import endpoints, events
from simulators.stripe.http.request import Operation, StripeRequest
from simulators.stripe.objects import (
    checkout,
    customers,
    invoice_payments,
    invoices,
    payments,
    portal,
    refunds,
    schedules,
    subscriptions,
)
from simulators.stripe.objects import products as catalogue
from simulators.stripe.objects import subscription_updates as changes


def _account(_: StripeRequest) -> Document:
    return {"id": "acct_simulated", "object": "account", "charges_enabled": True, "country": "US"}


def _pay_invoice(call: StripeRequest) -> Document:
    invoice = call.store.get(call.id, "invoice")
    if invoice["status"] == "draft":
        invoices.finalize(call.store, invoice)
    if invoice["status"] != "open":
        raise RequestRejected(400, "invoice_not_open", f"This invoice is {invoice['status']}.")
    is_paid = invoices.collect(call.store, invoice)
    subscriptions.settle(call.store, invoices.subscription_of(call.store, invoice), is_paid=is_paid)
    if not is_paid:
        payments.refuse_card()
    return invoice


# {} stands for the id of an object.
OPERATIONS: dict[str, Operation] = {
    "GET /account": _account,
    "POST /billing_portal/sessions": portal.create,
    "GET /charges": payments.list_charges,
    "GET /charges/{}": payments.retrieve_charge,
    "GET /checkout/sessions": checkout.index,
    "POST /checkout/sessions": checkout.create,
    "GET /checkout/sessions/{}": checkout.retrieve,
    "POST /checkout/sessions/{}/expire": checkout.expire,
    "GET /checkout/sessions/{}/line_items": checkout.line_items,
    "GET /customers": customers.index,
    "POST /customers": customers.create,
    "GET /customers/{}": customers.retrieve,
    "POST /customers/{}": customers.update,
    "DELETE /customers/{}": customers.delete,
    "GET /disputes": refunds.list_disputes,
    "GET /disputes/{}": refunds.retrieve_dispute,
    "POST /disputes/{}/close": refunds.close_dispute,
    "GET /events": events.index,
    "GET /events/{}": events.retrieve,
    "GET /invoice_payments": invoice_payments.index,
    "GET /invoices": invoices.index,
    "POST /invoices/create_preview": changes.preview,
    "GET /invoices/{}": invoices.retrieve,
    "POST /invoices/{}/mark_uncollectible": invoices.mark_uncollectible,
    "POST /invoices/{}/pay": _pay_invoice,
    "POST /invoices/{}/void": invoices.void,
    "GET /payment_intents": payments.list_intents,
    "GET /payment_intents/{}": payments.retrieve_intent,
    "GET /prices": catalogue.list_prices,
    "POST /prices": catalogue.create_price,
    "GET /prices/{}": catalogue.retrieve_price,
    "POST /prices/{}": catalogue.update_price,
    "GET /products": catalogue.list_products,
    "POST /products": catalogue.create_product,
    "GET /products/{}": catalogue.retrieve_product,
    "POST /products/{}": catalogue.update_product,
    "GET /refunds": refunds.list_refunds,
    "POST /refunds": refunds.create_refund,
    "GET /refunds/{}": refunds.retrieve_refund,
    "GET /subscription_schedules": schedules.index,
    "POST /subscription_schedules": schedules.create,
    "GET /subscription_schedules/{}": schedules.retrieve,
    "POST /subscription_schedules/{}": schedules.update,
    "POST /subscription_schedules/{}/release": schedules.release,
    "GET /subscriptions": subscriptions.index,
    "POST /subscriptions": subscriptions.create,
    "GET /subscriptions/{}": subscriptions.retrieve,
    "POST /subscriptions/{}": changes.update,
    "DELETE /subscriptions/{}": subscriptions.cancel,
    "GET /webhook_endpoints": endpoints.index,
    "POST /webhook_endpoints": endpoints.create,
    "GET /webhook_endpoints/{}": endpoints.retrieve,
    "POST /webhook_endpoints/{}": endpoints.update,
    "DELETE /webhook_endpoints/{}": endpoints.delete,
}


def operation_of(method: str, path: str) -> tuple[Operation, str]:
    """Returns the operation and the id in the path."""
    if (exact := OPERATIONS.get(f"{method} {path}")) is not None:
        return exact, ""
    parts = path.split("/")
    for place in range(len(parts) - 1, 1, -1):
        pattern = "/".join([*parts[:place], "{}", *parts[place + 1 :]])
        if (found := OPERATIONS.get(f"{method} {pattern}")) is not None:
            return found, parts[place]
    raise RequestRejected(404, "url_unknown", f"Unrecognized request URL ({method}: /v1{path}).")
