"""Unchanged polls: answered without a query, only to callers with access, and never outdated."""

import asyncio
import dataclasses
import uuid

import asyncpg
import httpx
import pytest

from core.app import create_app
from core.progress.run_poll_middleware import RunPollMiddleware
from core.wiring.application import build
from core.wiring.bootstrap import read_runtime
from infrastructure.rate_limits.windows import MemoryWindows
from shared.middleware.rate_limits import RateLimits
from tests.api.runs.conftest import DONE, RUNS
from tests.support import until
from tests.support.problems import assert_problem

pytestmark = pytest.mark.usefixtures("hearing")

KILL = """
select pg_terminate_backend(pid) from pg_stat_activity
where application_name = 'oslira-listener' and datname = current_database()
"""


@pytest.fixture
def framework(monkeypatch):
    """Paths of the requests that reached the framework."""
    paths = []
    whole = RunPollMiddleware.__call__

    async def spy(self, scope, receive, send):
        app = self._app

        async def noted(scope, receive, send):
            paths.append(scope["path"])
            await app(scope, receive, send)

        await whole(
            RunPollMiddleware(noted, self._live, self._authenticator, self._rate_limits), scope, receive, send
        )

    monkeypatch.setattr(RunPollMiddleware, "__call__", spy)
    return paths


async def test_unchanged_run_is_answered_by_the_middleware(framework, book, get, poll):
    run = await book.begun()
    seen = await get(run.id)
    framework.clear()

    answer = await poll(run.id, seen)

    assert (answer.status_code, answer.content, framework) == (304, b"", [])
    assert answer.headers["etag"] == seen.headers["etag"]
    assert answer.headers["retry-after"] == "2"
    assert answer.headers["cache-control"] == "private, no-cache"
    assert answer.headers["ratelimit"].startswith('"progress";r=')
    assert answer.headers["x-request-id"]
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_middleware_and_handler_send_the_same_304_headers(hearing, book, get, poll):
    run = await book.begun()
    seen = await get(run.id)
    quick = await poll(run.id, seen)
    hearing.clear()

    slow = await poll(run.id, seen)

    volatile = {"x-request-id", "ratelimit", "content-type", "content-length"}
    assert slow.status_code == quick.status_code == 304
    assert {name: value for name, value in slow.headers.items() if name not in volatile} == {
        name: value for name, value in quick.headers.items() if name not in volatile
    }


async def test_unchanged_run_is_answered_without_a_database_connection(addresses, place, book):
    environ = {
        "OSLIRA_ENVIRONMENT": "local",
        "DATABASE_URL": addresses.owner,
        "OSLIRA_DATA_DIR": str(place.settings.data_dir),
    }
    async with build(read_runtime({**environ, "OSLIRA_DATABASE_POOL_SIZE": "1"})) as application:
        app = create_app(application)
        await until(lambda: application.dependencies["live_runs"].is_listening)
        run = await book.begun()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            seen = await client.get(f"{RUNS}/{run.id}", headers=book.headers)
            database = application.dependencies["run_queries"].reads._database  # noqa: SLF001  takes all connections
            pools = (database._user_pool, database._admin_pool)  # noqa: SLF001
            lent = [(pool, await pool.acquire()) for pool in pools]
            headers = {**book.headers, "If-None-Match": seen.headers["etag"]}

            async with asyncio.timeout(1):
                answer = await client.get(f"{RUNS}/{run.id}", headers=headers)

            for pool, connection in lent:
                pool.release(connection)
    assert answer.status_code == 304


async def test_polls_use_the_local_limit_and_then_the_shared_limit(client_of, application, limits, book):
    run = await book.begun()
    here, shared = RateLimits(limits, MemoryWindows()), RateLimits(limits, MemoryWindows())
    client = client_of(dataclasses.replace(application, rate_limits=shared, poll_limits=here))
    seen = await client.get(f"{RUNS}/{run.id}", headers=book.headers)
    headers = {**book.headers, "If-None-Match": seen.headers["etag"]}

    answers = [await client.get(f"{RUNS}/{run.id}", headers=headers) for _ in range(6)]

    assert [answer.status_code for answer in answers] == [304, 304, 304, 304, 304, 429]
    left = [answer.headers["ratelimit"].removeprefix('"progress";r=') for answer in answers[:5]]
    assert left == ["2", "1", "0", "1", "0"]
    assert_problem(answers[5], 429, "rate_limited")


@pytest.fixture
def limits(application):
    """Limits of three polls per minute."""

    class Three:
        async def find(self, plan, route_class):
            limit = await application.rate_limits.limits.find(plan, route_class)
            return dataclasses.replace(limit, requests_max=3)

    return Three()


async def test_every_poll_is_recorded(application, client_of, book):
    points = []
    client = client_of(dataclasses.replace(application, record_request=points.append))
    run = await book.begun()
    seen = await client.get(f"{RUNS}/{run.id}", headers=book.headers)

    await client.get(f"{RUNS}/{run.id}", headers={**book.headers, "If-None-Match": seen.headers["etag"]})

    slow, quick = points
    assert (quick.route, quick.status, quick.account_id) == ("/v1/runs/{run_id}", 304, book.account_id)
    assert (quick.route, quick.principal_id) == (slow.route, slow.principal_id)


async def test_a_change_is_seen_by_the_next_poll(hearing, book, get, poll):
    run = await book.begun()
    seen = await get(run.id)

    await book.runs.progress(run, 40, step="core")
    await until(lambda: hearing.find(str(run.id)) is None)

    answer = await poll(run.id, seen)
    assert (answer.status_code, answer.json()["progress"]) == (200, 40)
    assert answer.headers["etag"] != seen.headers["etag"]


async def test_change_of_a_child_invalidates_the_parent(hearing, book, get, poll):
    parent = await book.begun(kind="bulk_analysis", credits_held=0, uses_concurrency_slot=False)
    child = await book.begun(parent_id=parent.id)
    seen = await get(parent.id)

    await book.runs.finish(child, DONE)
    await until(lambda: hearing.find(str(parent.id)) is None)

    assert (await poll(parent.id, seen)).json()["credits_charged"] == 5


async def test_caller_of_another_account_gets_404_despite_a_known_tag(client, make_book, book, get):
    run, other = await book.begun(), await make_book()
    seen = await get(run.id)

    answer = await client.get(
        f"{RUNS}/{run.id}", headers={**other.headers, "If-None-Match": seen.headers["etag"]}
    )

    assert_problem(answer, 404, "run_not_found")


@pytest.mark.parametrize(
    "change",
    [
        "delete from memberships where account_id = $1 and role = 'member'",
        "update memberships set is_active = false where account_id = $1",
        "update accounts set deleted_at = now() where id = $1",
    ],
)
async def test_lost_access_ends_cached_polls(hearing, client, owner, bearer, book, change):
    run, member = await book.begun(), bearer()
    user_id = uuid.UUID((await client.get("/v1/me", headers=member)).json()["id"])
    await owner.execute(
        "insert into memberships (account_id, user_id, role) values ($1, $2, 'member')",
        *(book.account_id, user_id),
    )
    member = {**member, "Oslira-Account": str(book.account_id)}
    seen = await client.get(f"{RUNS}/{run.id}", headers=member)
    member = {**member, "If-None-Match": seen.headers["etag"]}
    assert (await client.get(f"{RUNS}/{run.id}", headers=member)).status_code == 304
    live = hearing.find(str(run.id))

    await owner.execute(change, book.account_id)
    # Deleting the account also ends its runs, which removes the cached entry.
    await until(lambda: not live.callers or hearing.find(str(run.id)) is None)

    answer = await client.get(f"{RUNS}/{run.id}", headers=member)
    assert_problem(answer, 404, "account_not_found")


async def test_revoked_key_is_removed_from_the_cache(hearing, client, book):
    run = await book.begun()
    made = await client.post(
        "/v1/api-keys", headers=book.headers, json={"name": "k", "scopes": ["runs:read"]}
    )
    key = {"Authorization": f"Bearer {made.json()['key']}"}
    await client.get(f"{RUNS}/{run.id}", headers=key)
    live = hearing.find(str(run.id))
    assert live.callers

    await client.delete(f"/v1/api-keys/{made.json()['id']}", headers=book.headers)

    await until(lambda: not live.callers)


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer nothing"}, {"Oslira-Account": str(uuid.uuid4())}],
    ids=["no token", "a wrong token", "another account"],
)
async def test_known_tag_grants_no_access(client, book, get, headers):
    run = await book.begun()
    seen = await get(run.id)
    known = {"If-None-Match": seen.headers["etag"]}
    token = book.headers if "Oslira-Account" in headers else {}

    answer = await client.get(f"{RUNS}/{run.id}", headers={**known, **token, **headers})

    assert answer.status_code == (404 if token else 401)


async def test_notifications_resume_after_the_connection_is_killed(addresses, place, book, owner, logs):
    environ = {
        "OSLIRA_ENVIRONMENT": "local",
        "DATABASE_URL": addresses.owner,
        "OSLIRA_DATA_DIR": str(place.settings.data_dir),
    }
    async with build(read_runtime(environ)) as application:
        live, views = application.dependencies["live_runs"], application.dependencies["run_queries"]
        await until(lambda: live.is_listening)
        caller = (
            await application.dependencies["authenticator"].authenticate(
                book.headers["Authorization"].encode(), None
            )
        ).caller
        run = await book.begun()
        await views.get(caller, run.id)
        kept = live.find(str(run.id))

        await owner.execute(KILL)
        await until(lambda: live.find(str(run.id)) is not kept)
        await until(lambda: live.is_listening)
        view = await views.get(caller, run.id)
        waiting = asyncio.create_task(views.wait(caller, view, 20))
        await book.runs.progress(run, 40, step="core")

        assert (await waiting).out.progress == 40
    assert any(line["event"] == "listener_lost" for line in logs)


async def test_without_notifications_entries_are_fresh_for_one_second(application, book):
    caller = (
        await application.dependencies["authenticator"].authenticate(
            book.headers["Authorization"].encode(), None
        )
    ).caller
    seconds = [100.0]
    live = type(application.dependencies["live_runs"])(lambda: None, now_s=lambda: seconds[0])
    views = dataclasses.replace(application.dependencies["run_queries"], live=live)
    run = await book.begun()

    await views.get(caller, run.id)

    assert live.find(str(run.id)).fresh_until_s == 101.0


async def test_no_listener_is_opened_through_a_transaction_pooler(addresses, place):
    environ = {
        "OSLIRA_ENVIRONMENT": "local",
        "DATABASE_URL": addresses.owner,
        "OSLIRA_DATA_DIR": str(place.settings.data_dir),
        "OSLIRA_DATABASE_POOLER": "transaction",
    }
    connection = await asyncpg.connect(addresses.owner)
    count = "select count(*) from pg_stat_activity where application_name = 'oslira-listener'"
    before = await connection.fetchval(count)
    async with build(read_runtime(environ)) as application:
        assert not application.dependencies["live_runs"].is_listening
        assert await connection.fetchval(count) == before
    await connection.close()
