"""Pages for people: checkout, portal, invoice. Plain HTML without scripts."""

from datetime import UTC, datetime
from html import escape
from typing import Any

from litestar import MediaType, Response, Router, get, post
from litestar.datastructures import State
from litestar.params import FromPath

from simulators.faults.provider_requests import AnyRequest, Document, RequestRejected
from simulators.stripe.http.requests import parse_form
from simulators.stripe.objects import checkout, subscriptions
from simulators.stripe.objects.payments import DECLINED
from simulators.stripe.store import Store

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; background: #f4f5f8; color: #1f2430; margin: 0; }
main { max-width: 26rem; margin: 10vh auto; background: #fff; border-radius: 12px; padding: 2rem;
  box-shadow: 0 1px 3px rgb(0 0 0 / 12%); }
h1 { font-size: 1rem; color: #667; margin: 0 0 1rem; font-weight: 500; }
.price { font-size: 2.2rem; font-weight: 650; margin: 0; }
.note { color: #667; font-size: .9rem; }
.bad { color: #b3261e; } .good { color: #15703c; }
form { display: grid; gap: .6rem; margin-top: 1.5rem; }
button { font: inherit; padding: .7rem; border-radius: 8px; border: 1px solid #c9ccd6; background: #fff;
  cursor: pointer; }
button.main { background: #3b5bdb; border-color: #3b5bdb; color: #fff; font-weight: 600; }
table { width: 100%; border-collapse: collapse; } td { padding: .3rem 0; }
td:last-child { text-align: right; }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def _page(title: str, *parts: str, status: int = 200) -> Response[str]:
    document = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main><h1>Simulated Stripe: no money moves here</h1>"
        f"{''.join(parts)}</main></body></html>"
    )
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
    return Response(document, status_code=status, media_type=MediaType.HTML, headers=headers)


def _not_found() -> Response[str]:
    return _page("Not found", "<p>There is no such page.</p>", status=404)


def _money(cents: int, currency: str) -> str:
    sign = "-" if cents < 0 else ""
    return escape(f"{sign}{abs(cents) / 100:,.2f} {currency.upper()}")


def _day(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%d %B %Y}"


def _link(url: str | None, words: str, session_id: str) -> str:
    if url is None or not url.startswith(("http://", "https://")):
        return ""
    return f'<p><a href="{escape(url.replace("{CHECKOUT_SESSION_ID}", session_id))}">{words}</a></p>'


def _checkout_page(session: Document, error: str = "") -> Response[str]:
    what = escape(", ".join(item["description"] for item in session["_items"]))
    price = _money(session["amount_total"], session["currency"])
    top = f'<p>{what}</p><p class="price">{price}</p>'
    if session["mode"] == "subscription":
        top += '<p class="note">each month, until you cancel</p>'
    match session["status"]:
        case "open":
            bad = f'<p class="bad" role="alert">{escape(error)}</p>' if error else ""
            form = (
                '<form method="post"><button class="main" name="answer" value="pay">Pay</button>'
                '<button name="answer" value="decline">Decline the card</button></form>'
            )
            return _page(
                "Pay", top, bad, form, _link(session["cancel_url"], "Go back without paying", session["id"])
            )
        case "complete":
            good = '<p class="good" role="status">Paid. Thank you.</p>'
            return _page("Paid", top, good, _link(session["success_url"], "Go on", session["id"]))
        case _:
            return _page("Expired", top, "<p>This page has expired; nothing was paid.</p>")


@get("/pay/{session_id:str}", sync_to_thread=False)
def show_checkout_page(session_id: FromPath[str], state: State) -> Response[str]:
    session = state.stripe.store.find(session_id)
    return _not_found() if session is None or session["object"] != checkout.KIND else _checkout_page(session)


async def _pressed_button(request: AnyRequest) -> str | None:
    return parse_form((await request.body()).decode("utf-8", "replace")).text("answer")


@post("/pay/{session_id:str}", status_code=200)
async def pay(session_id: FromPath[str], request: AnyRequest, state: State) -> Response[str]:
    """Idempotent: a second payment shows that the session is already paid."""
    store: Store = state.stripe.store
    button = await _pressed_button(request)
    error = ""
    try:
        with store.transaction():
            session = store.get(session_id, checkout.KIND)
            is_open, declines = session["status"] == "open", button == "decline"
            if is_open and (declines or not checkout.complete(store, session)):
                error = DECLINED
    except RequestRejected:
        return _not_found()
    state.stripe.delivery_worker.wake()
    return _checkout_page(session, error)


def _portal_page(store: Store, session: Document) -> Response[str]:
    found = subscriptions.active_subscriptions(store, session["customer"])
    rows: list[str] = []
    for subscription in found:
        (item,) = subscription["items"]["data"]
        product = store.find(item["price"]["product"]) or {}
        until = "ends" if subscription["cancel_at"] else "renews"
        price = _money(item["price"]["unit_amount"], item["price"]["currency"])
        rows.append(f"<tr><td>{escape(product.get('name', 'Plan'))}</td><td>{price}</td></tr>")
        rows.append(f"<tr><td>{until} on</td><td>{_day(item['current_period_end'])}</td></tr>")
    is_ending = any(subscription["cancel_at"] for subscription in found)
    button = (
        '<button class="main" name="answer" value="resume">Keep it</button>'
        if is_ending
        else '<button name="answer" value="cancel">Cancel at the end of the period</button>'
    )
    body = f'<table>{"".join(rows)}</table><form method="post">{button}</form>'
    back = _link(session["return_url"], "Go back", session["id"])
    return _page("Your subscription", body if found else "<p>There is no subscription.</p>", back)


@get("/portal/{session_id:str}", sync_to_thread=False)
def show_portal(session_id: FromPath[str], state: State) -> Response[str]:
    session = state.stripe.store.find(session_id)
    if session is None or session["object"] != subscriptions.PORTAL:
        return _not_found()
    return _portal_page(state.stripe.store, session)


@post("/portal/{session_id:str}", status_code=200)
async def use_portal(session_id: FromPath[str], request: AnyRequest, state: State) -> Response[str]:
    store: Store = state.stripe.store
    button = await _pressed_button(request)
    session = store.find(session_id)
    if session is None or session["object"] != subscriptions.PORTAL:
        return _not_found()
    with store.transaction():
        subscriptions.cancel_or_resume(store, session["customer"], is_ending=button != "resume")
    state.stripe.delivery_worker.wake()
    return _portal_page(store, session)


@get("/invoice/{invoice_id:str}", sync_to_thread=False)
def show_invoice(invoice_id: FromPath[str], state: State) -> Response[str]:
    invoice = state.stripe.store.find(invoice_id)
    if invoice is None or invoice["object"] != "invoice":
        return _not_found()
    rows = "".join(
        f"<tr><td>{escape(line['description'])}</td><td>{_money(line['amount'], line['currency'])}</td></tr>"
        for line in invoice["lines"]["data"]
    )
    due = _money(invoice["amount_due"], invoice["currency"])
    title = f"Invoice {invoice['number'] or '(draft)'}"
    return _page(
        title,
        f"<p>{escape(title)}: {invoice['status']}</p>",
        f"<table>{rows}<tr><td>Due</td><td>{due}</td></tr></table>",
    )


def pages_router(path: str) -> Router:
    handlers: list[Any] = [show_checkout_page, pay, show_portal, use_portal, show_invoice]
    return Router(path, route_handlers=handlers)
