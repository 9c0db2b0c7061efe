"""Subscription schedules: future changes of a subscription, in phases."""

from simulators.faults.provider_requests import Document, RequestRejected
from simulators.stripe.events.events import emit
from simulators.stripe.http.requests import Form, StripeRequest
from simulators.stripe.objects.subscriptions import change, months_later
from simulators.stripe.store import Store, new_id

KIND = "subscription_schedule"


def create(request: StripeRequest) -> Document:
    store, name = request.store, "from_subscription"
    subscription = store.get(request.form.required(name), "subscription", param=name)
    if subscription["schedule"]:
        message = "This subscription has a schedule already."
        raise RequestRejected(400, "subscription_schedule_exists", message)
    (item,) = subscription["items"]["data"]
    schedule: Document = {
        "id": new_id("sub_sched"),
        "object": KIND,
        "created": store.now(),
        "customer": subscription["customer"],
        "phases": [_phase(item["price"]["id"], item["current_period_start"], item["current_period_end"])],
        "status": "active",
        "subscription": subscription["id"],
        "_phase": 0,
    }
    emit(store, "subscription_schedule.created", store.put(schedule))
    change(store, subscription, schedule=schedule["id"])
    return schedule


def _phase(price: str, start: int, end: int) -> Document:
    return {"start_date": start, "end_date": end, "items": [{"price": price}]}


def update(request: StripeRequest) -> Document:
    store, form = request.store, request.form
    schedule = _get_active(store, request.id)
    if "phases" in form:
        schedule["phases"] = _phases(store, schedule, form.parts("phases"))
    emit(store, "subscription_schedule.updated", store.put(schedule))
    return schedule


def _phases(store: Store, schedule: Document, forms: list[Form]) -> list[Document]:
    """Each phase begins where the one before ends. The current phase must be sent again unchanged."""
    current = schedule["phases"][schedule["_phase"]]
    if not forms or forms[0].number("start_date") != current["start_date"]:
        message = "The current phase must start as it did."
        raise RequestRejected(400, "parameter_invalid", message, param="phases[0]")
    start, phases = current["start_date"], list[Document]()
    for index, form in enumerate(forms):
        price_id = form.parts("items")[0].required("price")
        store.get(price_id, "price", param=f"phases[{index}][items][0][price]")
        end = form.number("end_date") or months_later(
            start, form.part("duration").number("interval_count") or 1
        )
        phases.append(_phase(price_id, start, end))
        start = end
    return phases


def _get_active(store: Store, schedule_id: str) -> Document:
    schedule = store.get(schedule_id, KIND)
    if schedule["status"] != "active":
        message = f"A subscription schedule that is {schedule['status']} cannot be changed."
        raise RequestRejected(400, "subscription_schedule_not_active", message)
    return schedule


def release(request: StripeRequest) -> Document:
    return _release(request.store, _get_active(request.store, request.id))


def _release(store: Store, schedule: Document) -> Document:
    subscription = store.get(schedule["subscription"], "subscription")
    schedule |= {"status": "released", "subscription": None, "released_subscription": subscription["id"]}
    change(store, subscription, schedule=None)
    emit(store, "subscription_schedule.released", store.put(schedule))
    return schedule


def start_next_phase(store: Store, subscription: Document) -> Document:
    """Applies the phase that begins with this period, if any. Returns the resulting subscription."""
    schedule = store.get(subscription["schedule"], KIND)
    index = schedule["_phase"] + 1
    if schedule["phases"][schedule["_phase"]]["end_date"] > store.now():
        return subscription
    if index == len(schedule["phases"]):
        _release(store, schedule)
        return store.get(subscription["id"], "subscription")
    schedule["_phase"] = index
    emit(store, "subscription_schedule.updated", store.put(schedule))
    price = store.get(schedule["phases"][index]["items"][0]["price"], "price")
    (item,) = subscription["items"]["data"]
    subscription["items"]["data"] = [{**item, "price": price}]
    return subscription
