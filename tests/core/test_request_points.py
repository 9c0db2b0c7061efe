"""One data point per request, which never slows or fails one."""

import dataclasses
import uuid

import pytest

from infrastructure.database import later
from infrastructure.database.later import Later
from tests.support import until

POINT = "select * from traffic.requests where request_id = $1"


@pytest.fixture
def point_of(owner):
    """A function: the point of a request, once it is written."""

    async def find(answer):
        return await until(lambda: owner.fetchrow(POINT, answer.headers["x-request-id"]))

    return find


async def test_a_point_says_what_was_asked_by_whom_and_how_it_went(client, bearer, point_of):
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
        ("GET", "/health", "/health", 200, None),
        ("HEAD", "/health", "/health", 200, None),
        ("GET", "/nothing/here", "", 404, "route_not_found"),
        ("GET", "/v1/credits/balance", "/v1/credits/balance", 401, "token_missing"),
        ("POST", "/v1/accounts", "", 415, "unsupported_media_type"),
        ("DELETE", "/health", "", 405, "method_not_allowed"),
    ],
)
async def test_refused_and_anonymous_requests_have_a_point_too(
    client, point_of, method, path, route, status, code
):
    content = b"x" if method == "POST" else None

    point = await point_of(await client.request(method, path, content=content))

    assert (point["method"], point["route"]) == (method, route)
    assert (point["status"], point["code"]) == (status, code)
    assert (point["account_id"], point["principal_kind"]) == (None, None)


async def test_an_answer_that_is_no_problem_document_is_classified_by_its_status(
    client_of, application, point_of
):
    async def fails():
        raise OSError

    health = dataclasses.replace(application.health, probes={"database": ("real", fails)}, _last=None)
    client = client_of(dataclasses.replace(application, health=health))

    point = await point_of(await client.get("/health/ready"))

    assert (point["status"], point["code"]) == (503, "status_503")


async def test_ids_and_queries_do_not_reach_the_points(client, bearer, point_of, owner):
    canary = uuid.uuid4()

    await point_of(await client.get(f"/v1/business-profiles/{canary}?x={canary}", headers=bearer()))

    points = await owner.fetchval("select string_agg(t::text, '') from traffic.requests as t")
    assert str(canary) not in points


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


async def test_what_comes_together_is_written_together(writer):
    points = Later("points", writer)
    for number in range(100):
        points.add(number)

    await until(lambda: writer.written)

    assert writer.written == [list(range(100))]


async def test_a_failure_is_told_once_and_nothing_is_lost_by_it(writer, logs):
    writer.failures = 3
    points = Later("points", writer)
    for number in range(4):
        points.add(number)

    await until(lambda: writer.written)

    assert writer.written == [[0, 1, 2, 3]]
    assert [entry["event"] for entry in logs if entry["event"] == "not_written_yet"] == ["not_written_yet"]


async def test_what_comes_during_a_failure_is_written_after_what_was_there(monkeypatch, writer):
    monkeypatch.setattr(later, "BATCH_MAX", 2)
    writer.failures = 1
    points = Later("points", writer)
    for number in range(5):
        points.add(number)

    await until(lambda: len(writer.written) == 3)

    assert writer.written == [[0, 1], [2, 3], [4]]


async def test_without_a_database_the_oldest_go_first(monkeypatch, writer):
    monkeypatch.setattr(later, "WAITING_MAX", 10)
    points = Later("points", writer)
    for number in range(25):
        points.add(number)

    await points.close()

    assert writer.written == [list(range(15, 25))]


async def test_closing_writes_what_is_left(writer):
    points = Later("points", writer)
    points.add("last")

    await points.close()

    assert writer.written == [["last"]]
