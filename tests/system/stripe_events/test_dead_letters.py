"""Poison events: an event that always fails does not block other events (T20)."""

import asyncio
import json

import pytest

from features.billing.domain.event_queue import FAILURES_MAX
from shared.errors import Unavailable
from tests.support import until
from tests.support.stripe_snapshots import checkout
from tests.system.stripe_events.stripe_world import event_of, id_of


class StripeAway(Unavailable):
    code = "stripe_unavailable"
    text = "Not available."


@pytest.fixture
def bought(world, tenant):
    bought = checkout(tenant.account_id)
    world.have(bought)
    return bought


@pytest.fixture
def poison(world, bought):
    """Event whose object raises when it is fetched, until the test replaces the object."""
    world.things[bought.id] = RuntimeError("boom")
    return world.emit("checkout.session.completed", bought.id)


async def applied_count(owner):
    return await owner.fetchval("select count(*) from webhook_events where status = 'applied'")


async def test_poison_event_does_not_block_other_events(consuming, inbox, world, owner, tenant, poison):
    good = [checkout(tenant.account_id, credits=1) for _ in range(30)]
    world.have(*good)
    await inbox.receive(poison, *(world.emit("checkout.session.completed", one.id) for one in good))
    consuming.set()

    await until(lambda: owner.fetchval("select count(*) = 30 from webhook_events where status = 'applied'"))

    row = await inbox.row(poison)
    assert (row["status"], row["failures"], row["last_error"]) == ("pending", 1, "unexpected_error")
    assert await owner.fetchval("select max(attempts) from webhook_events") == 1
    assert await inbox.balance(tenant.account_id) == 30


async def test_poison_event_backs_off_is_dead_lettered_and_applied_once_after_replay(
    inbox, world, tenant, bought, poison
):
    await inbox.receive(poison)
    waits = []
    for _ in range(FAILURES_MAX):
        assert await inbox.status(poison) == "pending"
        await inbox.time_passes()
        await inbox.work()
        waits.append(
            await inbox.owner.fetchval(
                "select extract(epoch from due_at - clock_timestamp()) from webhook_events"
            )
        )
    assert await inbox.status(poison) == "dead"
    assert waits[:9] == sorted(waits[:9])  # until the backoff reaches one hour
    assert 4 < waits[0] < 7
    assert 3_590 < waits[-1] <= 4_320

    await inbox.time_passes()
    assert await inbox.work() == []  # a dead event is not claimed

    world.have(bought)
    for _ in range(2):
        await inbox.events.replay(id_of(poison))
        assert await inbox.work() == ["applied"]

    assert await inbox.balance(tenant.account_id) == 100
    row = await inbox.row(poison)
    assert (row["replays"], row["failures"], row["last_error"]) == (2, 0, None)
    assert [change["outcome"] for entry in json.loads(row["effects"]) for change in entry["changes"]] == [
        "completed",
        "known",
    ]


async def test_event_that_kills_its_worker_is_dead_lettered(inbox, poison):
    """The workers never report a result; their claims expire."""
    await inbox.receive(poison)
    for _ in range(FAILURES_MAX):
        assert len(await inbox.processor.queue.claim(1)) == 1
        await inbox.time_passes()

    assert await inbox.processor.queue.claim(1) == []
    row = await inbox.row(poison)
    assert (row["status"], row["last_error"]) == ("dead", "never_came_back")


async def test_unavailable_stripe_does_not_count_as_a_failure_of_the_event(inbox, world, bought, poison):
    world.things[bought.id] = StripeAway()
    await inbox.receive(poison)
    for _ in range(FAILURES_MAX + 2):
        await inbox.time_passes()
        assert await inbox.work() == ["pending"]

    row = await inbox.row(poison)
    assert (row["failures"], row["attempts"], row["last_error"]) == (
        0,
        FAILURES_MAX + 2,
        "stripe_unavailable",
    )

    world.have(bought)
    await inbox.time_passes()
    assert await inbox.work() == ["applied"]


async def test_slow_stripe_request_times_out(inbox, world, monkeypatch, poison):
    async def never(session_id):
        del session_id
        await asyncio.Event().wait()

    monkeypatch.setattr("features.billing.application.stripe_events.process.FETCH_S_MAX", 0.02)
    world.checkout = never
    await inbox.receive(poison)

    assert await inbox.work() == ["pending"]
    assert (await inbox.row(poison))["last_error"] == "stripe_too_slow"


async def test_stored_error_does_not_contain_the_exception_text(consuming, inbox, logs, poison):
    await inbox.receive(poison)
    consuming.set()

    await until(lambda: [entry for entry in logs if entry["event"] == "event_failed"])

    (entry,) = [entry for entry in logs if entry["event"] == "event_failed"]
    assert (entry["stripe_event"], entry["ending"]) == (id_of(poison), "pending")
    assert "boom" not in str((await inbox.row(poison))["last_error"])


async def test_corrupted_payload_is_retried_as_malformed(inbox):
    payload = event_of("invoice.paid")
    await inbox.receive(payload)
    await inbox.owner.execute("update webhook_events set payload = 'spoilt'")

    assert await inbox.work() == ["pending"]
    assert (await inbox.row(payload))["last_error"] == "event_malformed"
