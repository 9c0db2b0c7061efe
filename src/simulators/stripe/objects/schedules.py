"""Subscription schedules: future changes of a subscription, in phases."""

from simulators.faults.json_access import Document
from simulators.faults.provider_errors import RequestRejected
from simulators.stripe.billing_periods import MONTHS, months_later
from simulators.stripe.events.events import emit
from simulators.stripe.http.api_versions import plan_of
from simulators.stripe.http.forms import Form
from simulators.stripe.http.request import StripeRequest, listed
from simulators.stripe.objects.subscriptions import change
from simulators.stripe.store import Store, new_id

SCHEDULES = "/v1/subscription_schedules"
KIND = "subscription_schedule"


def create(call: StripeRequest) -> Document:
    store = call.store
    subscription = store.get(call.form.needed("from_subscription"), "subscription", param="from_subscription")
    if subscription["schedule"]:
        raise RequestRejected(
            400, "subscription_schedule_exists", "This subscription has a schedule already."
        )
    (item,) = subscription["items"]["data"]
    phase = _phase(item["price"]["id"], item["current_period_start"], item["current_period_end"])
    schedule: Document = {
        "id": new_id("sub_sched"),
        "object": KIND,
        "canceled_at": None,
        "completed_at": None,
        "created": store.now(),
        "current_phase": {"start_date": phase["start_date"], "end_date": phase["end_date"]},
        "customer": subscription["customer"],
        "default_settings": {
            "billing_cycle_anchor": "automatic",
            "collection_method": "charge_automatically",
        },
        "end_behavior": "release",
        "livemode": False,
        "metadata": call.form.changed("metadata", {}),
        "phases": [phase],
        "released_at": None,
        "released_subscription": None,
        "status": "active",
        "subscription": subscription["id"],
        "_phase": 0,
    }
    emit(store, "subscription_schedule.created", store.put(schedule))
    change(store, subscription, schedule=schedule["id"])
    return schedule


def _phase(price: str, start: int, end: int, quantity: int = 1, proration: str = "none") -> Document:
    return {
        "start_date": start,
        "end_date": end,
        "items": [{"price": price, "plan": price, "quantity": quantity, "metadata": {}, "discounts": []}],
        "metadata": {},
        "proration_behavior": proration,
    }


def update(call: StripeRequest) -> Document:
    store, form = call.store, call.form
    schedule = _active(store, call.id)
    schedule["end_behavior"] = form.text("end_behavior") or schedule["end_behavior"]
    schedule["metadata"] = form.changed("metadata", schedule["metadata"])
    if "phases" in form:
        schedule["phases"] = _phases(store, schedule, form.parts("phases"))
    emit(store, "subscription_schedule.updated", store.put(schedule))
    return schedule


def _phases(store: Store, schedule: Document, forms: list[Form]) -> list[Document]:
    """Each phase begins where the one before ends. The current phase must be sent again unchanged."""
    current = schedule["phases"][schedule["_phase"]]
    start = forms[0].number("start_date") if forms else None
    if start != current["start_date"]:
        raise RequestRejected(
            400, "parameter_invalid", "The current phase must start as it did.", param="phases[0]"
        )
    phases: list[Document] = []
    for number, form in enumerate(forms):
        item = form.parts("items")[0]
        price = store.get(item.needed("price"), "price", param=f"phases[{number}][items][0][price]")
        start = form.number("start_date") or start or store.now()
        end = form.number("end_date") or _end(form, price, start)
        proration = form.text("proration_behavior") or "create_prorations"
        phases.append(_phase(price["id"], start, end, item.number("quantity") or 1, proration))
        start = end
    return phases


def _end(form: Form, price: Document, start: int) -> int:
    """Returns the end of the phase; without a duration or iterations, one period after its start."""
    duration, recurring = form.part("duration"), price["recurring"]
    if duration.fields:
        count = duration.number("interval_count") or 1
        return months_later(start, MONTHS[duration.needed("interval")] * count)
    iterations = form.number("iterations") or 1
    return months_later(start, MONTHS[recurring["interval"]] * recurring["interval_count"] * iterations)


def _active(store: Store, schedule_id: str) -> Document:
    schedule = store.get(schedule_id, KIND)
    if schedule["status"] != "active":
        message = f"A subscription schedule that is {schedule['status']} cannot be changed."
        raise RequestRejected(400, "subscription_schedule_not_active", message)
    return schedule


def release(call: StripeRequest) -> Document:
    return _release(call.store, _active(call.store, call.id), "released")


def _release(store: Store, schedule: Document, status: str) -> Document:
    subscription = store.get(schedule["subscription"], "subscription")
    schedule |= {"status": status, "current_phase": None, "subscription": None}
    schedule |= {"released_subscription": subscription["id"], "released_at": store.now()}
    change(store, subscription, schedule=None)
    emit(store, f"subscription_schedule.{status}", store.put(schedule))
    return schedule


def follow(store: Store, subscription: Document) -> Document:
    """Starts the next phase if it begins with this period. Returns the resulting subscription."""
    schedule = store.get(subscription["schedule"], KIND)
    number, now = schedule["_phase"] + 1, store.now()
    ends_at = schedule["phases"][schedule["_phase"]]["end_date"]
    if ends_at > now:
        return subscription
    if number == len(schedule["phases"]):
        _release(store, schedule, "released")
        return store.get(subscription["id"], "subscription")
    phase = schedule["phases"][number]
    schedule |= {
        "_phase": number,
        "current_phase": {"start_date": phase["start_date"], "end_date": phase["end_date"]},
    }
    emit(store, "subscription_schedule.updated", store.put(schedule))
    price = store.get(phase["items"][0]["price"], "price")
    (item,) = subscription["items"]["data"]
    subscription["items"]["data"] = [{**item, "price": price, "plan": plan_of(price)}]
    return subscription


def retrieve(call: StripeRequest) -> Document:
    return call.store.get(call.id, KIND)


def index(call: StripeRequest) -> Document:
    return listed(call, KIND, SCHEDULES, equal=("customer",))
