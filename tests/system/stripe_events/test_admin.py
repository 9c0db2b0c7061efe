"""Operator API for the inbox: list, show, and replay one event, a range, or missing events."""

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from tests.conftest import client_for, make_tenant
from tests.support.problems import assert_problem
from tests.support.stripe_snapshots import checkout
from tests.system.stripe_events.stripe_world import CREATED, World, event_of, id_of

PATH = "/v1/admin/webhooks"
AT = datetime.fromtimestamp(CREATED, UTC)
DAY = {"since": (AT - timedelta(hours=1)).isoformat(), "until": (AT + timedelta(hours=1)).isoformat()}


@pytest.fixture(scope="module")
def module_world():
    return World()


@pytest.fixture
def world(module_world):
    module_world.__init__()
    return module_world


@pytest.fixture(scope="module")
async def module_client(application, module_world):
    """Client of an application with a fake Stripe."""
    inbox = dataclasses.replace(application.dependencies["inbox"], stripe_reader=module_world)
    async with client_for(application.replacing(inbox=inbox)) as client:
        yield client


@pytest.fixture
def get(module_client, operator):
    async def call(path, **query):
        return await module_client.get(f"{PATH}{path}", params=query, headers=operator)

    return call


@pytest.fixture
def send(module_client, operator):
    async def call(path, body=None):
        return await module_client.post(f"{PATH}{path}", json=body, headers=operator)

    return call


async def ids(answer):
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


async def test_events_are_listed_newest_first_in_pages(inbox, get):
    payloads = [event_of("customer.created") for _ in range(5)]
    await inbox.receive(*payloads)

    first = await get("/events", limit=3)
    second = await get("/events", limit=3, cursor=first.json()["next_cursor"])

    assert await ids(first) + await ids(second) == [id_of(payload) for payload in reversed(payloads)]
    assert second.json()["next_cursor"] is None


async def test_events_are_filtered_by_status_type_account_and_time(inbox, get, world, tenant, owner):
    bought = checkout(tenant.account_id)
    world.have(bought)
    applied, ignored = world.emit("checkout.session.completed", bought.id), event_of("customer.created")
    await inbox.process_all(applied, ignored)
    later = event_of("invoice.paid", created=CREATED + 60)
    await inbox.receive(later)
    await owner.execute("update webhook_events set status = 'dead' where stripe_event_id = $1", id_of(later))
    minute = (AT + timedelta(seconds=60)).isoformat()

    assert await ids(await get("/events", status="applied")) == [id_of(applied)]
    assert await ids(await get("/events", status="dead")) == [id_of(later)]
    assert await ids(await get("/events", type="customer.created")) == [id_of(ignored)]
    assert await ids(await get("/events", account_id=str(tenant.account_id))) == [id_of(applied)]
    assert await ids(await get("/events", since=minute)) == [id_of(later)]
    assert await ids(await get("/events", until=minute)) == [id_of(ignored), id_of(applied)]
    other = await make_tenant(owner)
    assert await ids(await get("/events", account_id=str(other.account_id))) == []


async def test_event_is_shown_with_its_effects_and_payload(inbox, get, world, tenant):
    bought = checkout(tenant.account_id)
    world.have(bought)
    payload = world.emit("checkout.session.completed", bought.id)
    await inbox.process_all(payload)

    shown = (await get(f"/events/{id_of(payload)}")).json()

    assert (shown["status"], shown["account_id"], shown["due_at"]) == (
        *("applied", str(tenant.account_id), None),
    )
    assert shown["payload"]["data"]["object"]["id"] == bought.id
    assert shown["effects"][0]["changes"] == [
        {"what": "checkout", "outcome": "completed", "facts": {"id": bought.id, "credits": 100}}
    ]


async def test_replayed_event_is_requeued_and_applied_without_a_second_effect(inbox, send, world, tenant):
    bought = checkout(tenant.account_id)
    world.have(bought)
    payload = world.emit("checkout.session.completed", bought.id)
    await inbox.process_all(payload)

    answer = await send(f"/events/{id_of(payload)}/replay")

    assert (answer.status_code, answer.json()["status"], answer.json()["replays"]) == (202, "pending", 1)
    assert await inbox.work() == ["applied"]
    assert await inbox.balance(tenant.account_id) == 100


@pytest.mark.parametrize("event_id", ["evt_unknown", "no-event", "x" * 300])
async def test_unknown_event_is_not_found(get, send, event_id):
    assert_problem(await get(f"/events/{event_id}"), 404, "webhook_event_not_found")
    assert_problem(await send(f"/events/{event_id}/replay"), 404, "webhook_event_not_found")


async def test_range_replay_filters_by_type_and_status(inbox, send):
    ignored = [event_of("customer.created"), event_of("customer.updated")]
    outside = event_of("customer.created", created=CREATED - 7_200)
    await inbox.process_all(*ignored, outside)
    waiting = event_of("customer.created")
    await inbox.receive(waiting)

    async def replayed(**body):
        answer = await send("/replays", {**DAY, **body})
        assert answer.status_code == 202, answer.text
        return answer.json()

    assert await replayed(statuses=["dead", "applied"]) == {"replayed": 0, "fetched": 0}
    assert await replayed(types=["customer.updated"]) == {"replayed": 1, "fetched": 0}
    assert await replayed() == {"replayed": 1, "fetched": 0}  # the other events are queued already
    assert sorted(await inbox.work()) == ["ignored"] * 3


async def test_missing_events_are_fetched_from_stripe(inbox, send, world, tenant):
    bought = [checkout(tenant.account_id, credits=1) for _ in range(120)]
    world.have(*bought)
    payloads = [world.emit("checkout.session.completed", one.id) for one in bought]
    world.emit("customer.created", "cus_1", created=CREATED - 86_400)
    await inbox.receive(*payloads[:50])

    answer = await send("/replays", {**DAY, "missing": True})

    assert (answer.status_code, answer.json()) == (202, {"replayed": 0, "fetched": 70})
    assert (await send("/replays", {**DAY, "missing": True})).json()["fetched"] == 0
    await inbox.work()
    assert await inbox.balance(tenant.account_id) == 120


@pytest.mark.parametrize(("since", "until"), [(1, 1), (1, 0), (0, 32)])
async def test_empty_or_too_long_replay_range_is_rejected(send, since, until):
    days = {"since": AT + timedelta(days=since), "until": AT + timedelta(days=until)}
    body = {name: at.isoformat() for name, at in days.items()}

    assert_problem(await send("/replays", body), 422, "replay_range_invalid")
    assert_problem(await send("/replays", {**body, "missing": True}), 422, "replay_range_invalid")


async def test_missing_events_need_a_configured_stripe(application, operator):
    inbox = dataclasses.replace(application.dependencies["inbox"], stripe_reader=None)
    async with client_for(application.replacing(inbox=inbox)) as client:
        answer = await client.post(f"{PATH}/replays", json={**DAY, "missing": True}, headers=operator)

    assert_problem(answer, 503, "billing_not_configured")


async def test_inbox_requires_an_operator(module_client, bearer):
    for method, path in (("GET", "/events"), ("GET", "/events/evt_1"), ("POST", "/events/evt_1/replay")):
        assert_problem(
            await module_client.request(method, PATH + path, headers=bearer()), 403, "operators_only"
        )
