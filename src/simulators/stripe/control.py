"""Control routes of the simulated Stripe: clock, cards, refunds, disputes and deliveries."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
from litestar import Router, delete, get, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody

from simulators.faults.provider_requests import Document, RequestRejected, error_handlers, stripe_error
from simulators.stripe.objects import checkout, payments
from simulators.stripe.objects.renewals import BATCH, run_due
from simulators.stripe.store import Store

PATH = "/_stripe"


class ControlRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class AdvanceRequest(ControlRequest, frozen=True, kw_only=True):
    seconds: Annotated[int, msgspec.Meta(ge=0)]


class DeclinesRequest(ControlRequest, frozen=True, kw_only=True):
    customer: str = payments.ALL_CUSTOMERS
    times: Annotated[int, msgspec.Meta(ge=-1)] = 1  # -1: until reset by 0


class ReversalRequest(ControlRequest, frozen=True, kw_only=True):
    payment: str  # a payment intent's id, or a charge's
    amount: int | None = None
    reason: str | None = None


class CloseRequest(ControlRequest, frozen=True, kw_only=True):
    is_won: bool  # by the merchant


@contextmanager
def changing(state: State) -> Generator[Store]:
    """Opens one transaction and wakes the event delivery worker after it."""
    store: Store = state.stripe.store
    with store.transaction():
        yield store
    state.stripe.delivery_worker.wake()


@post("/advance", status_code=200, sync_to_thread=False)
def advance(data: JSONBody[AdvanceRequest], state: State) -> Document:
    """Advances the clock and runs all due changes, each at its own time."""
    with changing(state) as store:
        store.set("clock_offset_s", store.setting("clock_offset_s", 0) + data.seconds)
    count = BATCH
    while count == BATCH:
        with changing(state) as store:
            count = run_due(store)
    return {"now": store.now()}


@post("/declines", status_code=204, sync_to_thread=False)
def set_declines(data: JSONBody[DeclinesRequest], state: State) -> None:
    with changing(state) as store:
        store.set("declines", {**store.setting("declines", {}), data.customer: data.times})


@post("/refunds", status_code=201, sync_to_thread=False)
def make_refund(data: JSONBody[ReversalRequest], state: State) -> Document:
    with changing(state) as store:
        return payments.refund(store, payments.find_charge(store, data.payment), data.amount, data.reason, {})


@post("/disputes", status_code=201, sync_to_thread=False)
def open_dispute(data: JSONBody[ReversalRequest], state: State) -> Document:
    with changing(state) as store:
        charge = payments.find_charge(store, data.payment)
        return payments.open_dispute(store, charge, data.amount, data.reason or "fraudulent")


@post("/disputes/{dispute_id:str}/close", status_code=200, sync_to_thread=False)
def close_dispute(dispute_id: FromPath[str], data: JSONBody[CloseRequest], state: State) -> Document:
    with changing(state) as store:
        return payments.close_dispute(store, dispute_id, is_won=data.is_won)


@post("/sessions/{session_id:str}/pay", status_code=200, sync_to_thread=False)
def pay_session(session_id: FromPath[str], state: State) -> Document:
    """Does what the button of the payment page does."""
    with changing(state) as store:
        session = checkout.get_open(store, session_id)
        checkout.complete(store, session)
        return session


@get("/deliveries", sync_to_thread=False)
def list_deliveries(state: State) -> list[Document]:
    rows = state.stripe.store.database.execute(
        "select d.*, json_extract(o.document, '$.type') as type from deliveries as d"
        " left join objects as o on o.id = d.event order by d.id"
    )
    return [dict(row) for row in rows]


@delete("/", sync_to_thread=False)
def clear(state: State) -> None:
    """Deletes all data, including the clock."""
    state.stripe.store.clear()


def _error_document(error: RequestRejected) -> Document:
    return stripe_error(error.status, error.code, error.message, error.param)


def control_router() -> Router:
    handlers: list[Any] = [
        *(advance, set_declines, make_refund, open_dispute, close_dispute),
        *(pay_session, list_deliveries, clear),
    ]
    return Router(PATH, route_handlers=handlers, exception_handlers=error_handlers(_error_document))
