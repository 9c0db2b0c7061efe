"""Fake Stripe with objects, events and signatures that tests define."""

import hmac
import json
import time
import uuid

from features.billing.application.ports import RawEvent, StripeReader
from features.billing.domain.stripe_events import read_event

SECRET = "whsec_local_simulator"
CREATED = 1_790_000_000
OBJECTS = {
    "checkout": "checkout.session",
    "customer": "subscription",
    "subscription_schedule": "subscription_schedule",
    "invoice": "invoice",
    "charge": "charge",
    "refund": "refund",
}


class World(StripeReader):
    """Objects by id. ``asked`` counts the requests."""

    def __init__(self):
        self.things = {}
        self.refunds = {}  # by charge
        self.payloads = []  # every event, as bytes
        self.asked = 0
        self.after_read = {}  # by object id: called with the object after it was read

    def have(self, *snapshots):
        for snapshot in snapshots:
            self.things[snapshot.id] = snapshot

    async def _thing(self, thing_id):
        self.asked += 1
        found = self.things.get(thing_id)
        if isinstance(found, Exception):
            raise found
        after = self.after_read.pop(thing_id, None)
        return await after(found) if after else found

    subscription = invoice = checkout = dispute = _thing

    async def refunds_of(self, charge_id):
        self.asked += 1
        return self.refunds.get(charge_id, [])

    async def subscriptions(self):
        for thing in ():
            yield thing

    async def invoices(self, *, since):
        del since
        for thing in ():
            yield thing

    async def events(self, *, since, until):
        for payload in reversed(self.payloads):
            event = read_event(payload)
            if since <= event.created_at < until:
                yield RawEvent(id=event.id, type=event.type, created_at=event.created_at, payload=payload)

    def emit(self, event_type, subject_id, **fields):
        self.payloads.append(event_of(event_type, subject_id, **fields))
        return self.payloads[-1]


def event_of(event_type, subject_id="x", *, subject=None, **fields):
    return json.dumps(
        {
            "id": f"evt_{uuid.uuid4().hex}",
            "object": "event",
            "api_version": "2026-10-28.endive",
            "created": CREATED,
            "livemode": False,
            "pending_webhooks": 1,
            "type": event_type,
            "data": {
                "object": {
                    "id": subject_id,
                    "object": OBJECTS.get(event_type.partition(".")[0], "thing"),
                    **(subject or {}),
                }
            },
            **fields,
        }
    ).encode()


def id_of(payload):
    return json.loads(payload)["id"]


def signature(payload, *, secret=SECRET, at=None, scheme="v1"):
    at = int(time.time() if at is None else at)
    digest = hmac.digest(secret.encode(), b"%d." % at + payload, "sha256").hex()
    return f"t={at},{scheme}={digest}"


def signed(payload, **options):
    return {"Stripe-Signature": signature(payload, **options), "Content-Type": "application/json"}
