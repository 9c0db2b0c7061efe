"""Control of event deliveries: hold, release in any order, deliver again."""

import random
import time
from typing import Annotated

import msgspec
from litestar import get, post
from litestar.datastructures import State
from litestar.params import JSONBody

from simulators.faults.json_access import Document
from simulators.stripe.events.events import enqueue
from simulators.stripe.store import Store

STEP_S = 1e-6  # between two ordered deliveries


class TravelRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Selects events by id and type; all events by default."""

    events: list[str] = []
    types: list[str] = []
    copies: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    seed: int | None = None  # shuffles the events; without it they keep the order in which they occurred

    def fits(self, event: Document) -> bool:
        return (not self.events or event["id"] in self.events) and (
            not self.types or event["type"] in self.types
        )


@get("/deliveries", sync_to_thread=False)
def list_deliveries(state: State) -> list[Document]:
    rows = state.stripe.store.database.execute(
        "select d.*, json_extract(o.document, '$.type') as type from deliveries as d"
        " left join objects as o on o.id = d.event order by d.id"
    )
    return [dict(row) for row in rows]


@post("/deliveries/release", status_code=200, sync_to_thread=False)
def release(data: JSONBody[TravelRequest], state: State) -> Document:
    """Releases held deliveries."""
    store: Store = state.stripe.store
    with store.transaction():
        held = [
            (row["id"], event, row["endpoint"])
            for row in store.database.execute("select * from deliveries where status = 'held' order by id")
            if (event := store.find(row["event"])) is not None and data.fits(event)
        ]
        for _, event, endpoint in held:
            enqueue(store, event, endpoint, copies=data.copies - 1, is_held=True)
        copied = store.database.execute("select id, event from deliveries where status = 'held' order by id")
        wanted = {event["id"] for _, event, _ in held}
        numbers = [row["id"] for row in copied if row["event"] in wanted]
        _send_off(store, numbers, data.seed)
    state.stripe.courier.wake()
    return {"released": len(numbers)}


@post("/deliveries/redeliver", status_code=200, sync_to_thread=False)
def redeliver(data: JSONBody[TravelRequest], state: State) -> Document:
    """Delivers events again, whatever the result of the first delivery."""
    store: Store = state.stripe.store
    with store.transaction():
        last = store.database.execute("select coalesce(max(id), 0) from deliveries").fetchone()[0]
        endpoints = [endpoint["id"] for endpoint in store.some("webhook_endpoint")]
        for event in reversed(store.some("event")):
            if data.fits(event):
                for endpoint in endpoints:
                    enqueue(store, event, endpoint, copies=data.copies, is_held=True)
        fresh = store.database.execute("select id from deliveries where id > ? order by id", (last,))
        numbers = [row["id"] for row in fresh]
        _send_off(store, numbers, data.seed)
    state.stripe.courier.wake()
    return {"released": len(numbers)}


def _send_off(store: Store, numbers: list[int], seed: int | None) -> None:
    if seed is not None:
        random.Random(seed).shuffle(numbers)  # noqa: S311  not used for security
    now = time.time()
    for place, number in enumerate(numbers):
        store.database.execute(
            "update deliveries set status = 'pending', due_s = ? where id = ?",
            (now - (len(numbers) - place) * STEP_S, number),
        )
