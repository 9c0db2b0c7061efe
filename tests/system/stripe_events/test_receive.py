"""Webhook endpoint: success only for stored events, rate limit only for rejected ones."""

import asyncio
import dataclasses

import pytest

from core.webhooks.incoming import StripeEventWorker
from core.wiring.bootstrap import read_runtime
from shared.errors import Unavailable
from tests.support import until
from tests.support.problems import assert_problem
from tests.system.stripe_events.stripe_world import event_of, signed

PATH = "/v1/webhooks/stripe"


class Away(Unavailable):
    code = "database_unavailable"
    text = "Not available."


class FailingEvents:
    """Wraps the repository and raises before or after the event is stored."""

    def __init__(self, events, *, is_after):
        self._events, self._is_after = events, is_after

    async def add(self, event):
        if self._is_after:
            await self._events.add(event)
        raise Away


@pytest.fixture
def with_intake(application, client_of):
    """Factory of clients for an application with a changed intake."""

    def make(**changes):
        receiver = dataclasses.replace(application.dependencies["receiver"], **changes)
        return client_of(application.replacing(receiver=receiver))

    return make


async def rows(owner):
    return await owner.fetchval("select count(*) from webhook_events")


@pytest.mark.parametrize("is_after", [False, True], ids=["not stored", "stored, without a response"])
async def test_event_of_unknown_storage_is_answered_503_and_stored_once_on_redelivery(
    application, client, with_intake, owner, is_after
):
    events = application.dependencies["receiver"].events
    body = event_of("invoice.paid")

    answer = await with_intake(events=FailingEvents(events, is_after=is_after)).post(
        PATH, content=body, headers=signed(body)
    )

    assert_problem(answer, 503, "database_unavailable")
    assert await rows(owner) == int(is_after)

    again = await client.post(PATH, content=body, headers=signed(body))

    assert again.json() == {"received": True, "duplicate": is_after}
    assert await rows(owner) == 1


async def test_concurrent_copies_are_stored_once(client, owner):
    body = event_of("invoice.paid")

    answers = await asyncio.gather(
        *(client.post(PATH, content=body, headers=signed(body)) for _ in range(20))
    )

    assert sorted(answer.json()["duplicate"] for answer in answers) == [False] + [True] * 19
    assert await rows(owner) == 1


async def test_event_is_rejected_without_webhook_secrets(with_intake, owner):
    async def none():
        return ()

    body = event_of("invoice.paid")

    answer = await with_intake(secrets=none).post(PATH, content=body, headers=signed(body))

    assert_problem(answer, 503, "billing_not_configured")
    assert await rows(owner) == 0


async def test_new_event_wakes_the_worker_of_the_same_process(with_intake):
    rung = asyncio.Event()
    client, body = with_intake(wake_worker=rung.set), event_of("invoice.paid")
    await client.post(PATH, content=body, headers=signed(body))
    assert rung.is_set()
    rung.clear()

    await client.post(PATH, content=body, headers=signed(body))

    assert not rung.is_set()  # a duplicate does not wake the worker


async def test_rate_limit_counts_only_rejected_events(open_client, limit):
    await limit("stripe", 2)
    client, body = await open_client(), event_of("invoice.paid")
    good = [(await client.post(PATH, content=body, headers=signed(body))).status_code for _ in range(5)]
    bad = [(await client.post(PATH, content=b"{}", headers=signed(body))) for _ in range(4)]

    assert good == [200] * 5
    assert [answer.status_code for answer in bad] == [400, 400, 429, 429]
    assert (await client.post(PATH, content=body, headers=signed(body))).status_code == 200


async def test_body_size_limit_applies(client):
    small, large = (event_of("invoice.paid", note="x" * size) for size in (900_000, 1_100_000))

    assert (await client.post(PATH, content=small, headers=signed(small))).status_code == 200
    assert_problem(await client.post(PATH, content=large, headers=signed(large)), 413, "body_too_large")


@pytest.mark.parametrize(
    ("environ", "secrets"),
    [
        ({}, ("whsec_local_simulator",)),
        ({"STRIPE_WEBHOOK_SECRETS": "whsec_a, whsec_b"}, ("whsec_a", "whsec_b")),
        ({"STRIPE_SECRET_KEY": "sk_test_1"}, ()),
    ],
)
async def test_webhook_secrets_default_to_the_simulators(environ, secrets):
    assert await read_runtime(environ).rotating_settings().webhook_secrets() == secrets


class EmptyLine:
    looks = 0

    async def claim(self, events_max):
        del events_max
        self.looks += 1
        return []


async def test_one_arrival_causes_one_claim(monkeypatch, inbox):
    monkeypatch.setattr("core.webhooks.incoming.POLL_INTERVAL_S", 60.0)
    queue, arrivals, stopping = EmptyLine(), asyncio.Event(), asyncio.Event()
    consumer = StripeEventWorker(dataclasses.replace(inbox.processor, queue=queue), arrivals)
    task = asyncio.create_task(consumer.run(stopping))
    await until(lambda: queue.looks == 1)

    arrivals.set()

    await until(lambda: queue.looks == 2)
    for _ in range(50):
        await asyncio.sleep(0)
    assert queue.looks == 2
    stopping.set()
    await task


async def test_worker_processes_arriving_events_and_stops(consuming, inbox, owner):
    await inbox.receive(*(event_of("customer.created") for _ in range(10)))
    consuming.set()

    await until(
        lambda: owner.fetchval("select count(*) = 10 from webhook_events where status = 'ignored'"),
        timeout_s=10,
    )
