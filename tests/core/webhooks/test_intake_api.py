"""Answered with success only when it is kept; counted only when it is refused."""

import asyncio
import dataclasses

import pytest

from core.webhooks.incoming import StripeEventWorker
from core.wiring.bootstrap import runtime
from core.wiring.inbox import WebhookSecrets
from shared.errors import Unavailable
from tests.core.problems import assert_problem
from tests.core.webhooks.stripe_world import event_of, signed
from tests.support import until

PATH = "/v1/webhooks/stripe"


class Away(Unavailable):
    code = "database_unavailable"


class FailingEvents:
    """The real ones, whose connection is lost before, or after, the work is done."""

    def __init__(self, events, *, is_after):
        self._events, self._is_after = events, is_after

    async def add(self, event):
        if self._is_after:
            await self._events.add(event)
        raise Away


@pytest.fixture
def with_intake(application, client_of):
    """A function: a client of an application whose intake was changed."""

    def make(**changes):
        intake = dataclasses.replace(application.webhooks.intake, **changes)
        webhooks = dataclasses.replace(application.webhooks, intake=intake)
        return client_of(dataclasses.replace(application, webhooks=webhooks))

    return make


async def rows(owner):
    return await owner.fetchval("select count(*) from webhook_events")


@pytest.mark.parametrize("is_after", [False, True], ids=["not kept", "kept, and nobody knows"])
async def test_what_may_not_be_kept_is_no_success_and_sent_again_is_kept_once(
    application, client, with_intake, owner, is_after
):
    events = application.webhooks.intake.events
    body = event_of("invoice.paid")

    answer = await with_intake(events=FailingEvents(events, is_after=is_after)).post(
        PATH, content=body, headers=signed(body)
    )

    assert_problem(answer, 503, "database_unavailable")
    assert await rows(owner) == int(is_after)

    again = await client.post(PATH, content=body, headers=signed(body))

    assert again.json() == {"received": True, "duplicate": is_after}
    assert await rows(owner) == 1


async def test_many_copies_at_once_are_one(client, owner):
    body = event_of("invoice.paid")

    answers = await asyncio.gather(
        *(client.post(PATH, content=body, headers=signed(body)) for _ in range(20))
    )

    assert sorted(answer.json()["duplicate"] for answer in answers) == [False] + [True] * 19
    assert await rows(owner) == 1


async def test_without_a_stripe_nothing_is_taken(with_intake, owner):
    async def none():
        return ()

    body = event_of("invoice.paid")

    answer = await with_intake(secrets=none).post(PATH, content=body, headers=signed(body))

    assert_problem(answer, 503, "billing_not_configured")
    assert await rows(owner) == 0


async def test_an_event_wakes_whoever_works_in_the_same_process(with_intake):
    rung = asyncio.Event()
    client, body = with_intake(ring=rung.set), event_of("invoice.paid")
    await client.post(PATH, content=body, headers=signed(body))
    assert rung.is_set()
    rung.clear()

    await client.post(PATH, content=body, headers=signed(body))

    assert not rung.is_set()  # there is nothing new


async def test_good_ones_are_never_too_many_and_bad_ones_are(open_client, limit):
    await limit("stripe", 2)
    client, body = await open_client(), event_of("invoice.paid")
    good = [(await client.post(PATH, content=body, headers=signed(body))).status_code for _ in range(5)]
    bad = [(await client.post(PATH, content=b"{}", headers=signed(body))) for _ in range(4)]

    assert good == [200] * 5
    assert [answer.status_code for answer in bad] == [400, 400, 429, 429]
    assert (await client.post(PATH, content=body, headers=signed(body))).status_code == 200


async def test_a_body_may_be_as_large_as_any_other_and_no_larger(client):
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
async def test_secrets_are_those_that_were_given_or_the_simulators_own(environ, secrets):
    assert await WebhookSecrets(runtime(environ)).current() == secrets


class EmptyLine:
    looks = 0

    async def claim(self, events_max):
        del events_max
        self.looks += 1
        return []


async def test_one_ring_is_one_look(monkeypatch, desk):
    monkeypatch.setattr("core.webhooks.incoming.POLL_INTERVAL_S", 60.0)
    line, arrivals, stopping = EmptyLine(), asyncio.Event(), asyncio.Event()
    consumer = StripeEventWorker(dataclasses.replace(desk.consumption, line=line), arrivals)
    task = asyncio.create_task(consumer.attend(stopping))
    await until(lambda: line.looks == 1)

    arrivals.set()

    await until(lambda: line.looks == 2)
    for _ in range(50):
        await asyncio.sleep(0)
    assert line.looks == 2
    stopping.set()
    await task


async def test_the_consumer_works_on_what_comes_and_ends_when_told(consuming, desk, owner):
    await desk.take(*(event_of("customer.created") for _ in range(10)))
    consuming.set()

    await until(
        lambda: owner.fetchval("select count(*) = 10 from webhook_events where status = 'ignored'"),
        timeout_s=10,
    )
