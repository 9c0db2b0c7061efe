"""Error reports that the whole server sends to Sentry."""

import signal
from urllib.parse import urlsplit

import asyncpg
import httpx
import pytest

from tests.support import until
from tests.support.sentry_server import sentry_server

CANARY = "canary-7f3a"
POINTS = "select status, code from traffic.requests where code is not null order by at"


@pytest.fixture
def sentry():
    with sentry_server() as server:
        yield server


@pytest.fixture
async def spoilt(spoilable_addresses):
    """A connection to a database without a table that a route needs."""
    connection = await asyncpg.connect(spoilable_addresses.owner)
    await connection.execute("alter table public.business_profiles rename to gone")
    yield connection
    await connection.close()


async def test_unhandled_error_is_reported_once_without_secrets_and_problems_are_not(
    start, spoilt, spoilable_addresses, sentry, bearer
):
    process, port = await start(DATABASE_URL=spoilable_addresses.owner, SENTRY_DSN=sentry.dsn)
    headers = {**bearer(f"{CANARY}@example.com", is_operator=True), "X-Secret": CANARY}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers) as client:
        account_id = (await client.get("/v1/me")).json()["account"]["id"]
        adjustments = f"/v1/admin/accounts/{account_id}/credits/adjustments"
        answers = [
            await client.get("/v1/nothing"),
            await client.get(f"/v1/admin/runs/{account_id}/costs"),
            await client.post(
                adjustments, json={"reference": CANARY, "reason": CANARY, "credits": -1_000_000}
            ),
            await client.post(adjustments, json={"reference": CANARY, "other": CANARY}),
            await client.get(f"/v1/business-profiles/{account_id}", params={"name": CANARY}),
            await client.get(f"/v1/business-profiles/{account_id}"),
            await client.get("/health/ready"),
        ]
    process.send_signal(signal.SIGTERM)
    await process.wait()

    assert [answer.status_code for answer in answers] == [404, 404, 402, 400, 400, 500, 200]
    (event,) = sentry.events
    assert event["exception"]["values"][0]["type"] == "UndefinedTableError"
    assert event["tags"]["request_id"] == answers[5].headers["x-request-id"]
    assert CANARY not in str(sentry.bodies)
    assert headers["Authorization"].removeprefix("Bearer ") not in str(sentry.bodies)
    assert answers[6].json()["bindings"]["sentry"] == {
        "ok": True,
        "mode": "real",
        "detail": "DSN configured",
    }
    assert [tuple(row) for row in await spoilt.fetch(POINTS)] == [
        (404, "run_without_costs"),
        (402, "insufficient_credits"),
        (400, "invalid_request"),
        (400, "invalid_request"),
        (500, "internal_error"),
    ]


async def test_unavailable_database_is_not_reported(start, spoilable_addresses, owner, sentry, bearer):
    process, port = await start(DATABASE_URL=spoilable_addresses.owner, SENTRY_DSN=sentry.dsn)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=bearer(), timeout=30) as client:
        assert (await client.get("/v1/me")).status_code == 200
        name = urlsplit(spoilable_addresses.owner).path[1:]
        await owner.execute(f'alter database "{name}" allow_connections false')
        await owner.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", name)
        await until(lambda: is_refused(client))
        await owner.execute(f'alter database "{name}" allow_connections true')
    process.send_signal(signal.SIGTERM)
    await process.wait()

    assert sentry.events == []


async def is_refused(client):
    return (await client.get("/v1/business-profiles")).status_code == 503
