"""Request log: one data point per request, which never delays or fails the request."""

import dataclasses
import uuid

import pytest

from infrastructure.database import write_behind as later
from infrastructure.database.http import request_log as requests
from infrastructure.database.http.request_log import RequestCounts
from infrastructure.database.write_behind import WriteBehindQueue
from shared.middleware.request_log import RequestLogEntry
from tests.support import until

POINT = "select * from traffic.requests where request_id = $1"
COUNTED = """
select coalesce(sum(requests), 0) from traffic.request_counts
where method = $1 and route = $2 and status = $3 and code = $4
"""


@pytest.fixture
def point_of(owner):
    """Finds the data point of a request after it has been written."""

    async def find(answer):
        return await until(lambda: owner.fetchrow(POINT, answer.headers["x-request-id"]))

    return find


async def test_data_point_has_route_principal_and_result(client, bearer, point_of):
    headers = bearer()
    account_id = (await client.get("/v1/me", headers=headers)).json()["account"]["id"]

    point = await point_of(await client.get(f"/v1/accounts/{account_id}", headers=headers))

    assert (point["method"], point["route"], point["status"]) == (
        "GET",
        "/v1/accounts/{account_id}",
        200,
    )
    assert (str(point["account_id"]), point["principal_kind"]) == (account_id, "user")
    assert 0 < point["duration_ms"] < 60_000
    assert point["principal_id"] is not None


@pytest.mark.parametrize(
    ("method", "path", "route", "status", "code"),
    [
        ("GET", "/health", "/health", 200, ""),
        ("HEAD", "/health", "/health", 200, ""),
        ("GET", "/nothing/here", "", 404, "route_not_found"),
        ("GET", "/v1/credits/balance", "/v1/credits/balance", 401, "token_missing"),
        ("POST", "/v1/accounts", "/v1/accounts", 401, "token_missing"),
        ("DELETE", "/health", "", 405, "method_not_allowed"),
    ],
)
async def test_refused_request_without_an_account_is_counted_and_not_logged(
    client, owner, method, path, route, status, code
):
    key = (method, route, status, code)
    before = await owner.fetchval(COUNTED, *key)

    answers = [await client.request(method, path) for _ in range(3)]

    await until(lambda: is_counted(owner, key, before + 3))
    assert await owner.fetchval(COUNTED, *key) == before + 3
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert await owner.fetch("select from traffic.requests where request_id = any($1)", ids) == []


async def is_counted(owner, key, requests_min):
    return await owner.fetchval(COUNTED, *key) >= requests_min


async def test_public_request_that_succeeds_has_a_point(client, point_of):
    point = await point_of(await client.get("/schema/openapi.json"))

    assert (point["method"], point["route"], point["status"]) == ("GET", "/schema/openapi.json", 200)
    assert (point["code"], point["account_id"], point["principal_kind"]) == (None, None, None)


async def test_error_without_a_problem_document_is_counted_by_its_status(client_of, application, owner):
    async def fails():
        raise OSError

    health = dataclasses.replace(application.health, checks={"database": ("real", fails)}, _last=None)
    client = client_of(dataclasses.replace(application, health=health))
    key = ("GET", "/health/ready", 503, "status_503")
    before = await owner.fetchval(COUNTED, *key)

    await client.get("/health/ready")

    await until(lambda: is_counted(owner, key, before + 1))


async def test_ids_and_queries_are_not_recorded(client, bearer, point_of, owner):
    canary = uuid.uuid4()

    await point_of(await client.get(f"/v1/business-profiles/{canary}?x={canary}", headers=bearer()))

    await client.get(f"/v1/{canary}?x={canary}")
    await client.request(f"X{canary.hex}", "/health")

    await until(lambda: is_counted(owner, ("OTHER", "", 405, "method_not_allowed"), 1))
    for table in ("requests", "request_counts"):
        rows = await owner.fetchval(f"select string_agg(t::text, '') from traffic.{table} as t")
        assert str(canary) not in rows
        assert canary.hex not in rows.lower()


class Writer:
    def __init__(self):
        self.written = []
        self.failures = 0

    async def __call__(self, items):
        if self.failures:
            self.failures -= 1
            raise OSError("the database is away")
        self.written.append(items)


@pytest.fixture
def writer(monkeypatch):
    monkeypatch.setattr(later, "WRITE_INTERVAL_S", 0.01)
    return Writer()


async def test_points_added_together_are_written_in_one_batch(writer):
    points = WriteBehindQueue("points", writer)
    for number in range(100):
        points.add(number)

    await until(lambda: writer.written)

    assert writer.written == [list(range(100))]


async def test_failure_is_logged_once_and_loses_no_points(writer, logs):
    writer.failures = 3
    points = WriteBehindQueue("points", writer)
    for number in range(4):
        points.add(number)

    await until(lambda: writer.written)

    assert writer.written == [[0, 1, 2, 3]]
    assert [entry["event"] for entry in logs if entry["event"] == "not_written_yet"] == ["not_written_yet"]


async def test_order_is_preserved_after_a_failure(monkeypatch, writer):
    monkeypatch.setattr(later, "BATCH_MAX", 2)
    writer.failures = 1
    points = WriteBehindQueue("points", writer)
    for number in range(5):
        points.add(number)

    await until(lambda: len(writer.written) == 3)

    assert writer.written == [[0, 1], [2, 3], [4]]


async def test_oldest_points_are_dropped_when_the_queue_is_full(monkeypatch, writer):
    monkeypatch.setattr(later, "WAITING_MAX", 10)
    points = WriteBehindQueue("points", writer)
    for number in range(25):
        points.add(number)

    await points.close()

    assert writer.written == [list(range(15, 25))]


async def test_closing_writes_what_is_left(writer):
    points = WriteBehindQueue("points", writer)
    points.add("last")

    await points.close()

    assert writer.written == [["last"]]


class Session:
    """Records the written rows; fails the given number of times."""

    def __init__(self):
        self.writer = Writer()

    async def fetch(self, _, *columns):
        await self.writer(list(zip(*columns, strict=True)))


def refused(route, at_s=60.0):
    return RequestLogEntry(at_s, "GET", route, 404, 1.0, None, None, None, "r", "route_not_found")


async def test_requests_of_one_minute_route_and_reason_are_one_row():
    session = Session()
    counts = RequestCounts(session)
    for at_s in (60.0, 119.9, 120.0):
        counts.add(refused("/a", at_s))
    counts.add(refused("/b"))

    await counts.close()

    assert session.writer.written == [
        [
            (60, "GET", "/a", 404, "route_not_found", 2),
            (60, "GET", "/b", 404, "route_not_found", 1),
            (120, "GET", "/a", 404, "route_not_found", 1),
        ]
    ]


async def test_counts_survive_a_database_that_is_away(writer):
    del writer  # only its write interval is used
    session = Session()
    session.writer.failures = 2
    counts = RequestCounts(session)
    for _ in range(5):
        counts.add(refused("/a"))
    await until(lambda: session.writer.failures < 2)
    counts.add(refused("/a"))

    await until(lambda: session.writer.written)

    assert session.writer.written == [[(60, "GET", "/a", 404, "route_not_found", 6)]]


async def test_counts_occupy_limited_memory(monkeypatch):
    monkeypatch.setattr(requests, "COUNTS_MAX", 10)
    session = Session()
    counts = RequestCounts(session)
    for number in range(25):
        counts.add(refused(f"/{number}"))
        counts.add(refused("/0"))

    await counts.close()

    (rows,) = session.writer.written
    assert (len(rows), rows[0][-1]) == (10, 26)
