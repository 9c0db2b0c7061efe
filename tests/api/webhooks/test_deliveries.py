"""Webhook delivery from the event to the receiver, over real sockets and a real database."""

import asyncio
import json
import socket
import threading
import uuid
from collections import Counter
from datetime import timedelta

import pytest
from standardwebhooks.webhooks import Webhook

from core.wiring.slices.webhooks import delivery_worker
from tests.api.webhooks.conftest import DELIVERIES, ENDPOINTS, carrying
from tests.support import until
from tests.support.scripted_server import ScriptedServer, http, stall


async def account_of(tenant):
    return uuid.UUID((await tenant.ask("GET", "/v1/me"))["account"]["id"])


async def settled(tenant, **query):
    """Waits until every delivery has had its first attempt."""

    async def tried():
        found = await tenant.deliveries(**query)
        return found if found and all(item["attempts"] for item in found) else None

    return await until(tried)


def verified(secret, asked):
    return Webhook(secret).verify(asked.body, asked.headers)


@pytest.mark.usefixtures("deliveries")
async def test_ended_run_is_delivered_with_a_valid_signature(tenant, receiver, owner):
    receiver.script(http(204))
    endpoint = await tenant.add(receiver.url + "/hook?x=1")
    account_id, run_id = await account_of(tenant), uuid.uuid4()
    await owner.execute(
        "select runs.start($1, $2, 'x', '{}', 0, 'analysis', 'no_worker')", account_id, run_id
    )
    await owner.execute("select runs.request_cancel($1, $2)", account_id, run_id)

    (delivery,) = await settled(tenant)

    (asked,) = receiver.asked
    notice = verified(endpoint["secret"], asked)
    assert (asked.path, notice["type"], notice["data"]["run_id"]) == (
        "/hook?x=1",
        "run.cancelled",
        str(run_id),
    )
    assert asked.headers["webhook-id"] == delivery["webhook_id"]
    assert asked.headers["content-type"] == "application/json"
    assert (delivery["status"], delivery["last_status"]) == ("delivered", 204)
    known = await tenant.ask("GET", f"{DELIVERIES}/{delivery['id']}")
    assert known["body"] == json.loads(asked.body)
    assert [(one["number"], one["http_status"]) for one in known["attempt_log"]] == [(1, 204)]


@pytest.mark.usefixtures("deliveries")
async def test_old_and_new_secret_verify_after_a_rotation(tenant, receiver):
    receiver.script(http(200))
    endpoint = await tenant.add(receiver.url)
    rotated = await tenant.on(endpoint, "rotate-secret")
    await tenant.on(endpoint, "test", 202)
    await settled(tenant)

    for secret in (endpoint["secret"], rotated["secret"]):
        assert verified(secret, receiver.asked[0])["type"] == "endpoint.test"


@pytest.mark.usefixtures("deliveries")
async def test_failed_delivery_is_retried_with_the_same_id(tenant, receiver, owner):
    receiver.script(http(500), http(200))
    endpoint = await tenant.add(receiver.url)
    await tenant.on(endpoint, "test", 202)
    (waiting,) = await settled(tenant)
    failing = await tenant.ask("GET", f"{ENDPOINTS}/{endpoint['id']}")

    await owner.execute(
        "update webhook_deliveries set due_at = now() where id = $1", uuid.UUID(waiting["id"])
    )
    (delivered,) = await until(lambda: tenant.deliveries(status="delivered", endpoint_id=endpoint["id"]))

    assert (waiting["status"], waiting["attempts"], waiting["last_status"]) == ("pending", 1, 500)
    assert failing["failing_since"] == waiting["last_attempt_at"]
    assert (delivered["id"], delivered["attempts"]) == (waiting["id"], 2)
    first, second = receiver.asked
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert (await tenant.ask("GET", f"{ENDPOINTS}/{endpoint['id']}"))["failing_since"] is None


@pytest.mark.usefixtures("deliveries")
@pytest.mark.parametrize(("http_status", "status"), [(200, "delivered"), (503, "pending")])
async def test_overflowing_retry_after_is_ignored_and_the_attempt_counted(
    tenant, receiver, http_status, status
):
    receiver.script(http(http_status, retry_after="Thu, 01 Jan 2026 12:00:00 +99999999999999999"))
    await tenant.on(await tenant.add(receiver.url), "test", 202)

    (delivery,) = await settled(tenant)

    assert (delivery["status"], delivery["attempts"]) == (status, 1)
    assert delivery["last_status"] == http_status


@pytest.mark.usefixtures("deliveries")
async def test_status_410_disables_the_endpoint(tenant, receiver):
    receiver.script(http(410))
    endpoint = await tenant.add(receiver.url)
    await tenant.on(endpoint, "test", 202)
    (delivery,) = await settled(tenant)

    found = await tenant.ask("GET", f"{ENDPOINTS}/{endpoint['id']}")
    assert (delivery["status"], found["status"], found["disabled_reason"]) == ("failed", "disabled", "gone")


@pytest.mark.usefixtures("deliveries")
async def test_stored_url_with_a_forbidden_address_is_not_requested(tenant, receiver, owner):
    """The sender checks the stored URL again on every attempt."""
    receiver.script(http(200))
    endpoint = await tenant.add(receiver.url)
    await owner.execute(
        "update webhook_endpoints set url = 'http://169.254.169.254/' where id = $1",
        uuid.UUID(endpoint["id"]),
    )
    await tenant.on(endpoint, "test", 202)
    (delivery,) = await settled(tenant)

    assert (delivery["status"], delivery["last_error"]) == ("pending", "address_forbidden")


@pytest.mark.usefixtures("deliveries")
async def test_one_tenants_slow_receiver_does_not_delay_another(tenant, new_tenant, receiver):
    other = new_tenant()
    receiver.script(http(200))
    async with ScriptedServer() as slow:
        slow.script(stall)
        endpoint = await tenant.add(slow.url)
        for _ in range(30):
            await tenant.on(endpoint, "test", 202)
        await until(lambda: len(slow.asked) == 5)
        await other.on(await other.add(receiver.url), "test", 202)
        (delivery,) = await settled(other)

        assert delivery["status"] == "delivered"
        assert len(slow.asked) == 5
        await tenant.on(endpoint, "disable")


@pytest.fixture
def stuck_lookups(monkeypatch):
    """Counts lookups per host; lookups of ``*.stuck.example`` block until the test ends."""
    gate, begun, real = threading.Event(), Counter(), socket.getaddrinfo

    def look_up(host, *args, **options):
        if not str(host).endswith(".stuck.example"):
            return real(host, *args, **options)
        begun[host] += 1
        gate.wait()
        raise OSError(host)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    yield begun
    gate.set()


async def test_stuck_dns_lookups_do_not_block_provider_threads(deliveries, stuck_lookups, new_tenant):
    del deliveries  # the fixture keeps it running
    for number in range(4):
        tenant = new_tenant()
        endpoint = await tenant.add(f"http://tenant{number}.stuck.example/hook")
        for _ in range(5):
            await tenant.on(endpoint, "test", 202)
    await until(lambda: stuck_lookups.total() >= 6)

    async with asyncio.timeout(10):
        assert await asyncio.to_thread(int) == 0  # provider clients use the same threads
    await until(lambda: len(stuck_lookups) == 4)
    assert set(stuck_lookups.values()) == {2}


async def test_expired_lease_of_a_dead_worker_is_taken_over(application, tenant, receiver, owner):
    await owner.execute("update webhook_deliveries set status = 'failed' where status = 'pending'")
    receiver.script(http(200))
    await tenant.on(await tenant.add(receiver.url), "test", 202)
    outbox = application.dependencies["webhook_deliveries"].store._session  # noqa: SLF001  claim of a dying worker
    await outbox.fetch("select * from webhooks.claim(20, 5, $1)", timedelta(milliseconds=50))

    async with carrying(application.resources):
        (delivery,) = await settled(tenant)

    assert (delivery["status"], len(receiver.asked)) == ("delivered", 1)


async def test_stopped_worker_finishes_its_claimed_deliveries(application, tenant, owner):
    await owner.execute("update webhook_deliveries set status = 'failed' where status = 'pending'")
    asked, answer = asyncio.Event(), asyncio.Event()

    async def waits(_, writer):
        asked.set()
        await answer.wait()
        writer.write(http(200))

    async with ScriptedServer() as receiver:
        receiver.script(waits)
        await tenant.on(await tenant.add(receiver.url), "test", 202)
        stopping = asyncio.Event()
        attending = asyncio.create_task(delivery_worker(application.resources).run(stopping))
        await asked.wait()
        stopping.set()
        stopped, _ = await asyncio.wait({attending}, timeout=0.1)
        answer.set()
        await attending

    assert not stopped
    (delivery,) = await tenant.deliveries()
    assert delivery["status"] == "delivered"


@pytest.mark.usefixtures("deliveries")
async def test_logs_contain_neither_secret_nor_body(tenant, receiver, logs):
    receiver.script(http(410, b"receiver text"))
    endpoint = await tenant.add(receiver.url)
    await tenant.on(endpoint, "test", 202)
    await settled(tenant)
    (line,) = await until(lambda: [one for one in logs if one["event"] == "endpoint_disabled"])

    assert line["reason"] == "gone"
    assert endpoint["secret"].removeprefix("whsec_")[:10] not in str(logs)
    assert "receiver text" not in str(logs)
