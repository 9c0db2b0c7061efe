"""Processing of claimed Stripe events with fakes behind the ports."""

import uuid
from contextlib import asynccontextmanager

import pytest

from features.billing.application.stripe_events.process import StripeEventProcessor
from features.billing.domain.errors import PaymentsUnavailable, PriceUnknown
from features.billing.domain.event_queue import FAILURES_MAX, ClaimedEvent, WaitsForAnotherEvent
from shared.errors import Conflict
from tests.support import NOON


class Rejected(Conflict):
    code = "rejected"
    text = "Rejected."


class Change:
    is_ignored = False
    account_id = uuid.UUID(int=1)
    effects = ()


class World:
    """The queue, the state at Stripe, the effects and the repository in one object."""

    def __init__(self):
        self.error = None
        self.is_claim_lost = False
        self.processed = []
        self.requeued = []
        self.is_committed = False

    async def fetch(self, payload):
        if self.error is not None:
            raise self.error
        return payload

    async def apply(self, _state):
        return Change()

    @asynccontextmanager
    async def transaction(self):
        yield
        self.is_committed = True

    async def lock(self, _event):
        return not self.is_claim_lost

    async def mark_processed(self, event, status, account_id, effects):
        self.processed.append((event.id, status, account_id, effects))

    async def requeue(self, _event, decision):
        self.requeued.append(decision)
        return not self.is_claim_lost


@pytest.fixture
def world():
    return World()


@pytest.fixture
def process(world):
    processor = StripeEventProcessor(world, world, world, world, lambda: 0.0)

    async def run(**fields):
        event = ClaimedEvent(
            **{
                "id": "evt_1",
                "type": "invoice.paid",
                "payload": b"{}",
                "claim": uuid.UUID(int=2),
                "claimed_at": NOON,
                "received_at": NOON,
                "attempts": 1,
                "failures": 0,
                **fields,
            }
        )
        return await processor.process(event)

    return run


async def test_applied_event_is_marked_in_the_transaction_of_its_effects(world, process):
    assert await process() == ("applied", None)
    assert world.processed == [("evt_1", "applied", Change.account_id, ())]
    assert world.is_committed


async def test_lost_claim_applies_nothing(world, process):
    world.is_claim_lost = True

    assert await process() == ("taken_over", None)
    assert world.processed == []


@pytest.mark.parametrize(
    ("error", "status", "failures"),
    [
        (WaitsForAnotherEvent(what="account"), "parked", 0),
        (PriceUnknown(price_id="price_1"), "parked", 0),
        (PaymentsUnavailable(reason="no_answer"), "pending", 0),
        (Rejected(), "pending", 1),
    ],
    ids=["missing data", "unknown price", "stripe unavailable", "rejected"],
)
async def test_failed_event_is_requeued_by_the_kind_of_its_error(world, process, error, status, failures):
    world.error = error

    assert await process() == (status, None)
    (decision,) = world.requeued
    assert (decision.error, decision.failures) == (error.code, failures)


async def test_unexpected_error_is_returned_for_the_log(world, process):
    world.error = RuntimeError("unexpected")

    assert await process() == ("pending", world.error)
    assert world.requeued[0].error == "unexpected_error"


async def test_event_that_failed_too_often_becomes_a_dead_letter(world, process):
    world.error = Rejected()

    assert await process(failures=FAILURES_MAX - 1, attempts=FAILURES_MAX) == ("dead", None)
