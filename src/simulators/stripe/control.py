"""Control routes of the simulated Stripe: clock, cards, refunds, disputes and event delivery."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

import msgspec
from litestar import Router, delete, post
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody

from simulators.faults.corrupt_responses import stripe_error
from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected, answering
from simulators.stripe.events.deliveries import list_deliveries, redeliver, release
from simulators.stripe.objects import checkout, refunds
from simulators.stripe.objects.payments import EVERYBODY
from simulators.stripe.objects.renewals import catch_up
from simulators.stripe.store import Store

PATH = "/_stripe"
BATCH = 500


class ControlRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class SettingsRequest(ControlRequest, frozen=True, kw_only=True):
    """Absent settings stay unchanged."""

    holds: bool | None = None  # whether new deliveries wait until they are released
    copies: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None  # of each new event
    drops: list[str] | None = None  # event types that are lost before delivery
    at_once: Annotated[int, msgspec.Meta(ge=1, le=64)] | None = None  # parallel deliveries; 1 keeps the order
    retry_s: Annotated[float, msgspec.Meta(ge=0)] | None = None  # before the first retry; then doubled
    api_version: str | None = None  # of new events, and of calls without a version
    signing_secrets: list[str] | None = None
    after_retries: Literal["canceled", "unpaid", "past_due"] | None = None


class AdvanceRequest(ControlRequest, frozen=True, kw_only=True):
    seconds: Annotated[int, msgspec.Meta(ge=0)] = 0
    to: int | None = None  # a time of Stripe's clock, which only moves forward


class DeclinesRequest(ControlRequest, frozen=True, kw_only=True):
    customer: str = EVERYBODY
    times: Annotated[int, msgspec.Meta(ge=-1)] = 1  # -1: until reset by 0


class MoneyBackRequest(ControlRequest, frozen=True, kw_only=True):
    payment: str  # a payment intent's id, or a charge's
    amount: int | None = None
    reason: str | None = None


class PayRequest(ControlRequest, frozen=True, kw_only=True):
    is_delayed: bool = False  # paid by a bank that takes days


class EndRequest(ControlRequest, frozen=True, kw_only=True):
    is_good: bool  # paid, won


@contextmanager
def changing(state: State) -> Generator[Store]:
    """Opens one transaction and wakes the event delivery worker after it."""
    store: Store = state.stripe.store
    with store.transaction():
        yield store
    state.stripe.courier.wake()


@post("/settings", status_code=204, sync_to_thread=False)
def set_settings(data: JSONBody[SettingsRequest], state: State) -> None:
    with changing(state) as store:
        for name, value in msgspec.structs.asdict(data).items():
            if value is not None:
                store.set(name, value)


@post("/advance", status_code=200, sync_to_thread=False)
def advance(data: JSONBody[AdvanceRequest], state: State) -> Document:
    """Advances the clock and runs all due changes, each at its own time."""
    with changing(state) as store:
        ahead = max((data.to or 0) - store.now(), data.seconds, 0)
        store.set("clock_offset_s", store.setting("clock_offset_s", 0) + ahead)
    happened, batch = 0, BATCH
    while batch == BATCH:
        with changing(state) as store:
            batch = catch_up(store, BATCH)
        happened += batch
    return {"now": store.now(), "happened": happened}


@post("/declines", status_code=204, sync_to_thread=False)
def set_declines(data: JSONBody[DeclinesRequest], state: State) -> None:
    with changing(state) as store:
        store.set("declines", {**store.setting("declines", {}), data.customer: data.times})


@post("/refunds", status_code=201, sync_to_thread=False)
def make_refund(data: JSONBody[MoneyBackRequest], state: State) -> Document:
    with changing(state) as store:
        return refunds.refund(store, refunds.paid_charge(store, data.payment), data.amount, data.reason, {})


@post("/refunds/{refund_id:str}/fail", status_code=200, sync_to_thread=False)
def fail_refund(refund_id: FromPath[str], state: State) -> Document:
    with changing(state) as store:
        return refunds.fail_refund(store, refund_id)


@post("/disputes", status_code=201, sync_to_thread=False)
def open_dispute(data: JSONBody[MoneyBackRequest], state: State) -> Document:
    with changing(state) as store:
        charge = refunds.paid_charge(store, data.payment)
        return refunds.open_dispute(store, charge, data.amount, data.reason or "fraudulent")


@post("/disputes/{dispute_id:str}/close", status_code=200, sync_to_thread=False)
def close_dispute(dispute_id: FromPath[str], data: JSONBody[EndRequest], state: State) -> Document:
    with changing(state) as store:
        return refunds.end_dispute(store, dispute_id, is_won=data.is_good)


@post("/sessions/{session_id:str}/pay", status_code=200, sync_to_thread=False)
def pay_session(session_id: FromPath[str], data: JSONBody[PayRequest], state: State) -> Document:
    """Does what the button of the payment page does."""
    with changing(state) as store:
        session = checkout.open_session(store, session_id)
        checkout.complete(store, session, is_delayed=data.is_delayed)
        return session


@post("/sessions/{session_id:str}/settle", status_code=200, sync_to_thread=False)
def settle_session(session_id: FromPath[str], data: JSONBody[EndRequest], state: State) -> Document:
    """Records the final result of a delayed payment."""
    with changing(state) as store:
        session = store.get(session_id, checkout.KIND)
        return checkout.settle(store, session, is_paid=data.is_good)


@delete("/", sync_to_thread=False)
def forget(state: State) -> None:
    """Deletes all data, including clock and settings."""
    state.stripe.store.forget()


def _form(refusal: RequestRejected) -> Document:
    return stripe_error(refusal.status, refusal.code, refusal.message, refusal.param)


def control_router() -> Router:
    handlers: list[Any] = [
        *(set_settings, advance, set_declines, forget),
        *(make_refund, fail_refund, open_dispute, close_dispute, pay_session, settle_session),
        *(list_deliveries, release, redeliver),
    ]
    return Router(PATH, route_handlers=handlers, exception_handlers=answering(_form))
