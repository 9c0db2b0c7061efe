"""Event deliveries: signed, retried, and each by one process."""

import asyncio

import pytest
import stripe

from core.settings.payments import LOCAL_SECRET
from simulators.stripe.events.delivery_worker import EventDeliveryWorker
from simulators.stripe.events.events import SECRET, emit
from simulators.stripe.events.registration import DESCRIPTION, Registration
from simulators.stripe.store import Store
from tests.support import free_port, until
from tests.support.scripted_server import ScriptedServer, http
from tests.support.simulated import simulated_providers


def events_of(listener):
    return [asked.json for asked in listener.asked]


def types_of(listener):
    return [event["type"] for event in events_of(listener)]


async def test_events_are_accepted_by_stripes_own_verifier(shop, listener):
    await shop.bought(shop.pack)
    await until(lambda: "checkout.session.completed" in types_of(listener))
    asked = listener.asked[-1]
    event = stripe.Webhook.construct_event(asked.body, asked.headers["stripe-signature"], SECRET)

    assert event.data.object.customer == shop.customer.id
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.Webhook.construct_event(asked.body + b" ", asked.headers["stripe-signature"], SECRET)


def test_local_server_has_the_simulators_secret():
    assert LOCAL_SECRET == SECRET


async def test_event_is_retried_until_it_is_accepted(shop, listener):
    listener.script(http(500), http(200))
    await shop.client.customers.create_async({"name": "P"})

    async def delivered():
        return [entry for entry in await shop.deliveries() if entry["status"] == "delivered"]

    deliveries = await until(delivered)

    assert len({event["id"] for event in events_of(listener)}) == 1
    assert [(entry["response_status"], entry["attempts"]) for entry in deliveries] == [(200, 2)]


async def test_endpoint_gets_only_the_event_types_that_it_names(shop, listener):
    async with ScriptedServer() as other:
        other.script(http(200))
        params = {"url": other.url, "enabled_events": ["customer.subscription.created"]}
        await shop.client.webhook_endpoints.create_async(params)
        await shop.subscribed()
        await until(lambda: "checkout.session.completed" in types_of(listener) and other.asked)

        assert types_of(other) == ["customer.subscription.created"]


async def test_delivery_workers_of_two_processes_deliver_each_event_once(tmp_path):
    async with ScriptedServer() as server:
        server.script(http(200))
        stores = [Store(tmp_path / "stripe.sqlite") for _ in range(2)]
        endpoint = {"id": "we_1", "object": "webhook_endpoint", "enabled_events": ["*"]}
        with stores[0].transaction():
            stores[0].put({**endpoint, "url": server.url})
        workers = [asyncio.create_task(EventDeliveryWorker(store).run()) for store in stores]
        for number in range(20):
            store = stores[number % 2]
            with store.transaction():
                emit(store, "customer.created", store.put({"id": f"cus_{number}", "object": "customer"}))
        await until(lambda: len(server.asked) >= 20)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        for store in stores:
            store.close()
    ids = [event["id"] for event in events_of(server)]

    assert len(ids) == len(set(ids)) == 20


@pytest.mark.battery
async def test_processes_share_stored_data_that_outlives_them(tmp_path):
    headers, path = {"authorization": "Bearer simulated"}, "/stripe/v1/customers"
    async with simulated_providers(tmp_path) as one, simulated_providers(tmp_path) as other:
        pair = (one, other)
        made = await asyncio.gather(*(pair[n % 2].http.post(path, headers=headers) for n in range(20)))
    async with simulated_providers(tmp_path) as later:
        kept = (await later.http.get(f"{path}?limit=100", headers=headers)).json()["data"]

    assert {answer.json()["id"] for answer in made} == {customer["id"] for customer in kept}


async def test_local_server_registers_once_and_stopped_ones_are_removed(shop):
    registration, url = Registration(), f"{shop.simulators.address}/stripe"
    gone = f"http://127.0.0.1:{free_port()}/v1/webhooks/stripe"
    async with ScriptedServer() as server:
        await registration.ensure(url, gone)
        for _ in range(2):
            await Registration().ensure(url, f"{server.url}/v1/webhooks/stripe")
    found = (await shop.client.webhook_endpoints.list_async()).data

    assert [entry.url for entry in found] == [f"{server.url}/v1/webhooks/stripe"]
    assert found[0].description == DESCRIPTION


async def test_registration_ignores_an_unreachable_simulator():
    await Registration().ensure(f"http://127.0.0.1:{free_port()}/stripe", "http://127.0.0.1:1/")
