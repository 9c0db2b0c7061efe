"""Event deliveries: signed, repeated, shuffled, held, lost."""

import asyncio

import pytest
import stripe

from core.settings.payments import LOCAL_SECRET
from simulators.stripe.events.delivery_worker import EventDeliveryWorker
from simulators.stripe.events.endpoints import SECRET
from simulators.stripe.events.events import emit
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
    await shop.control("settings", retry_s=0.01)
    listener.script(http(500), http(302, location="/"), http(400), http(200))
    await shop.client.products.create_async({"name": "P"})
    await until(lambda: len(listener.asked) == 4)

    async def taken():
        return [entry for entry in await shop.deliveries() if entry["status"] == "delivered"]

    deliveries = await until(taken)

    assert len({event["id"] for event in events_of(listener)}) == 1
    assert [(entry["status"], entry["attempts"]) for entry in deliveries] == [("delivered", 4)]


@pytest.mark.parametrize("seed", [None, 7])
async def test_held_events_are_released_in_any_order_and_several_times(shop, listener, seed):
    await shop.control("settings", holds=True, at_once=1)
    await shop.subscribed()
    held = [entry["event"] for entry in await shop.deliveries()]
    silent = len(listener.asked)
    released = await shop.control("deliveries/release", seed=seed)
    again = await shop.control("deliveries/redeliver", events=held, copies=2, seed=seed)
    await until(lambda: len(listener.asked) == released["released"] + again["released"])
    seen = [event["id"] for event in events_of(listener)]

    assert (silent, released["released"], again["released"]) == (0, len(held), 2 * len(held))
    assert {seen.count(event_id) for event_id in held} == {3}
    assert (seen[: len(held)] == held) is (seed is None)


async def test_lost_event_is_redelivered_on_request(shop, listener):
    await shop.control("settings", drops=["customer.updated"], copies=2)
    await shop.client.customers.update_async(shop.customer.id, {"name": "Grace"})
    lost = [entry["status"] for entry in await shop.deliveries()]
    await shop.control("settings", drops=[])
    await shop.control("deliveries/redeliver", types=["customer.updated"])
    await until(lambda: types_of(listener) == ["customer.updated"])

    assert lost == ["dropped", "dropped"]


async def test_endpoint_gets_its_event_types_in_its_own_version(shop, listener):
    async with ScriptedServer() as other:
        other.script(http(200))
        params = {"url": other.url, "enabled_events": ["customer.subscription.created"]}
        await shop.client.webhook_endpoints.create_async({**params, "api_version": "2024-06-20"})
        await shop.subscribed()
        await until(lambda: "checkout.session.completed" in types_of(listener) and other.asked)
        (event,) = events_of(other)

    assert (event["type"], event["api_version"]) == ("customer.subscription.created", "2024-06-20")
    assert "current_period_end" in event["data"]["object"]
    (newer,) = [entry for entry in events_of(listener) if entry["id"] == event["id"]]
    assert "current_period_end" not in newer["data"]["object"]


async def test_both_secrets_sign_during_a_rotation(shop, listener):
    await shop.control("settings", signing_secrets=["whsec_new", "whsec_old"])
    await shop.client.products.create_async({"name": "P"})
    await until(lambda: listener.asked)
    asked = listener.asked[0]

    for secret in ("whsec_new", "whsec_old"):
        stripe.WebhookSignature.verify_header(asked.body, asked.headers["stripe-signature"], secret)


async def test_delivery_workers_of_two_processes_deliver_each_event_once(tmp_path):
    async with ScriptedServer() as server:
        server.script(http(200))
        stores = [Store(tmp_path / "stripe.sqlite") for _ in range(2)]
        endpoint = {"id": "we_1", "object": "webhook_endpoint", "status": "enabled", "enabled_events": ["*"]}
        with stores[0].transaction():
            stores[0].put({**endpoint, "url": server.url, "api_version": None})
        couriers = [asyncio.create_task(EventDeliveryWorker(store).run()) for store in stores]
        for number in range(20):
            store = stores[number % 2]
            with store.transaction():
                emit(store, "customer.created", store.put({"id": f"cus_{number}", "object": "customer"}))
        await until(lambda: len(server.asked) >= 20)
        for courier in couriers:
            courier.cancel()
        await asyncio.gather(*couriers, return_exceptions=True)
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
