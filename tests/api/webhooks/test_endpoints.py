"""Webhook endpoints over HTTP: the real app on the real database."""

import asyncio
import uuid
from datetime import UTC, datetime

import pytest

from features.webhooks.domain.endpoint import TYPES
from tests.api.webhooks.conftest import DELIVERIES, ENDPOINTS
from tests.support.problems import assert_problem

URL = "https://hooks.alpine-coffee.example/oslira"


@pytest.fixture
async def endpoint(tenant):
    return await tenant.add(URL)


async def test_only_the_creation_response_contains_the_secret(tenant):
    made = await tenant.add(URL, types=["run.failed", "run.completed", "run.failed"], description=" Office ")

    read = await tenant.ask("GET", f"{ENDPOINTS}/{made['id']}")
    assert made.pop("secret").startswith("whsec_")
    assert made == read
    assert (read["url"], read["types"], read["description"]) == (
        URL,
        ["run.failed", "run.completed"],
        "Office",
    )
    assert (read["status"], read["disabled_reason"], read["secret_version"]) == ("active", None, 1)
    assert read["created_by"].startswith("user:")


async def test_secret_can_be_read_and_is_not_stored(tenant, endpoint, owner):
    shown = await tenant.ask("GET", f"{ENDPOINTS}/{endpoint['id']}/secret")
    rows = await owner.fetch("select e::text as row from webhook_endpoints as e")

    assert shown["secret"] == endpoint["secret"]
    assert [row for row in rows if endpoint["secret"].removeprefix("whsec_")[:20] in row["row"]] == []


async def test_each_endpoint_has_a_secret_of_its_own(tenant, endpoint):
    assert (await tenant.add(URL))["secret"] != endpoint["secret"]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://10.0.0.1/x", "not a public internet address"),
        ("http://169.254.169.254/latest/meta-data", "not a public internet address"),
        ("https://user:secret@hooks.example", "no user or password"),
        ("ftp://hooks.example", "https:// or http://"),
        ("https://hooks.example/#x", "fragments"),
    ],
)
async def test_forbidden_url_is_rejected_with_a_reason(tenant, endpoint, url, reason):
    for method, path in (("POST", ENDPOINTS), ("PATCH", f"{ENDPOINTS}/{endpoint['id']}")):
        answer = await tenant.client.request(method, path, headers=tenant.headers, json={"url": url})

        assert_problem(answer, 422, "webhook_url_invalid")
        assert reason in answer.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        {"types": ["run.started"]},
        {"types": ["endpoint.test"]},
        {"description": "x" * 201},
        {"secret": "whsec_x"},
        {"status": "active"},
        {"url": None},
    ],
    ids=str,
)
async def test_invalid_body_is_rejected(tenant, body):
    answer = await tenant.client.post(ENDPOINTS, headers=tenant.headers, json={"url": URL, **body})

    assert answer.status_code == 400


async def test_description_with_a_line_break_is_rejected(tenant):
    answer = await tenant.client.post(
        ENDPOINTS, headers=tenant.headers, json={"url": URL, "description": "a\nb"}
    )

    assert_problem(answer, 422, "webhook_description_invalid")


async def test_patch_changes_only_the_fields_sent(tenant, endpoint):
    url = f"{ENDPOINTS}/{endpoint['id']}"
    changed = await tenant.ask("PATCH", url, json={"types": list(TYPES), "description": "new"})
    moved = await tenant.ask("PATCH", url, json={"url": f"{URL}/2", "description": None})
    same = await tenant.ask("PATCH", url, json={"url": f"{URL}/2"})

    assert (changed["url"], changed["types"], changed["description"]) == (URL, list(TYPES), "new")
    assert (moved["url"], moved["types"], moved["description"]) == (f"{URL}/2", list(TYPES), None)
    assert same == moved


async def test_concurrent_requests_create_at_most_ten_endpoints(tenant):
    await tenant.add(URL)
    requests = (tenant.client.post(ENDPOINTS, headers=tenant.headers, json={"url": URL}) for _ in range(12))

    answers = await asyncio.gather(*requests)

    assert sorted(answer.status_code for answer in answers) == [201] * 9 + [409] * 3
    assert_problem(next(one for one in answers if one.status_code == 409), 409, "webhook_endpoints_limit")
    listed = await tenant.ask("GET", ENDPOINTS)
    assert (len(listed["items"]), listed["next_cursor"]) == (10, None)


async def test_pages_follow_each_other_newest_first(tenant):
    ids = [(await tenant.add(URL))["id"] for _ in range(3)]

    first = await tenant.ask("GET", ENDPOINTS, params={"limit": 2})
    rest = await tenant.ask("GET", ENDPOINTS, params={"limit": 2, "cursor": first["next_cursor"]})

    assert [item["id"] for item in (*first["items"], *rest["items"])] == ids[::-1]


async def test_repeated_request_creates_one_endpoint(tenant):
    key = {"Idempotency-Key": uuid.uuid4().hex}
    made = [await tenant.ask("POST", ENDPOINTS, 201, json={"url": URL}, headers=key) for _ in range(2)]

    assert made[0] == made[1]
    assert len((await tenant.ask("GET", ENDPOINTS))["items"]) == 1


async def test_rotation_is_idempotent_by_key(tenant, endpoint):
    key = {"Idempotency-Key": uuid.uuid4().hex}
    first = await tenant.on(endpoint, "rotate-secret", headers=key)
    again = await tenant.on(endpoint, "rotate-secret", headers=key)
    second = await tenant.on(endpoint, "rotate-secret")

    assert first == again
    assert (first["secret_version"], second["secret_version"]) == (2, 3)
    assert len({endpoint["secret"], first["secret"], second["secret"]}) == 3
    assert first["rotated_at"] is not None


async def test_rotation_whose_response_was_lost_is_not_repeated(tenant, endpoint, owner):
    key = {"Idempotency-Key": uuid.uuid4().hex}
    first = await tenant.on(endpoint, "rotate-secret", headers=key)
    # Simulates a process that died between the effect and the stored response.
    await owner.execute("update traffic.idempotency_keys set response = null, locked_until = now()")

    assert await tenant.on(endpoint, "rotate-secret", headers=key) == first


async def test_disabled_endpoint_receives_nothing_until_enabled(tenant, endpoint):
    await tenant.on(endpoint, "test", 202)
    disabled = await tenant.on(endpoint, "disable")
    (delivery,) = await tenant.deliveries()

    assert (disabled["status"], disabled["disabled_reason"]) == ("disabled", "by_hand")
    assert (delivery["status"], delivery["next_attempt_at"]) == ("failed", None)
    for url, body in (
        (f"{ENDPOINTS}/{endpoint['id']}/test", None),
        (f"{ENDPOINTS}/{endpoint['id']}/replays", {"since": "2026-01-01T00:00:00Z"}),
        (f"{DELIVERIES}/{delivery['id']}/replay", None),
    ):
        answer = await tenant.client.post(url, headers=tenant.headers, json=body)
        assert_problem(answer, 409, "webhook_endpoint_disabled")
    assert await tenant.on(endpoint, "disable") == disabled

    enabled = await tenant.on(endpoint, "enable")

    assert (enabled["status"], enabled["disabled_reason"]) == ("active", None)
    assert await tenant.on(endpoint, "enable") == enabled
    assert (await tenant.ask("POST", f"{DELIVERIES}/{delivery['id']}/replay", 202))["status"] == "pending"


async def test_removing_an_endpoint_removes_its_deliveries(tenant, endpoint):
    delivery = await tenant.on(endpoint, "test", 202)

    await tenant.ask("DELETE", f"{ENDPOINTS}/{endpoint['id']}", 204)

    for method, url in (
        ("GET", f"{ENDPOINTS}/{endpoint['id']}"),
        ("DELETE", f"{ENDPOINTS}/{endpoint['id']}"),
        ("POST", f"{ENDPOINTS}/{endpoint['id']}/test"),
    ):
        assert_problem(
            await tenant.client.request(method, url, headers=tenant.headers),
            404,
            "webhook_endpoint_not_found",
        )
    missing = await tenant.client.get(f"{DELIVERIES}/{delivery['id']}", headers=tenant.headers)
    assert_problem(missing, 404, "webhook_delivery_not_found")


async def test_test_message_is_idempotent_and_for_one_endpoint(tenant, endpoint):
    await tenant.add(URL)
    key = {"Idempotency-Key": uuid.uuid4().hex}

    sent = [await tenant.on(endpoint, "test", 202, headers=key) for _ in range(2)]

    (delivery,) = await tenant.deliveries()
    assert sent == [delivery, delivery]
    assert (delivery["type"], delivery["endpoint_id"]) == ("endpoint.test", endpoint["id"])
    assert delivery["webhook_id"].startswith("msg_")


async def test_deliveries_are_filtered_and_paged(tenant, endpoint, owner):
    other = await tenant.add(URL)
    ids = [(await tenant.on(endpoint, "test", 202))["id"] for _ in range(3)]
    other_id = (await tenant.on(other, "test", 202))["id"]
    await owner.execute("update webhook_deliveries set status = 'dead' where id = $1", uuid.UUID(ids[1]))

    everything = await tenant.ask("GET", DELIVERIES, params={"limit": 3})
    rest = await tenant.ask("GET", DELIVERIES, params={"limit": 3, "cursor": everything["next_cursor"]})

    found = [item["id"] for item in (*everything["items"], *rest["items"])]
    assert found == [other_id, *ids[::-1]]
    assert [item["id"] for item in await tenant.deliveries(endpoint_id=endpoint["id"])] == ids[::-1]
    assert [item["id"] for item in await tenant.deliveries(endpoint_id=endpoint["id"], status="dead")] == [
        ids[1]
    ]
    assert [item["id"] for item in await tenant.deliveries(status="dead")] == [ids[1]]
    assert await tenant.deliveries(endpoint_id=str(uuid.uuid4())) == []


async def test_deliveries_of_another_account_are_not_listed(tenant, endpoint, new_tenant):
    await tenant.on(endpoint, "test", 202)

    assert await new_tenant().deliveries(endpoint_id=endpoint["id"]) == []


async def test_failed_deliveries_of_an_interval_are_replayed(tenant, endpoint, owner):
    ids = [(await tenant.on(endpoint, "test", 202))["id"] for _ in range(4)]
    for number, (status, day) in enumerate((("dead", 1), ("failed", 2), ("dead", 3), ("delivered", 2))):
        await owner.execute(
            "update webhook_deliveries set status = $2, failures = 8, created_at = $3 where id = $1",
            *(uuid.UUID(ids[number]), status, datetime(2026, 1, day, tzinfo=UTC)),
        )

    body = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-03T00:00:00Z"}
    replayed = await tenant.on(endpoint, "replays", 202, json=body)

    assert replayed == {"deliveries_count": 2}
    assert {item["id"]: item["status"] for item in await tenant.deliveries()} == {
        ids[0]: "pending",
        ids[1]: "pending",
        ids[2]: "dead",
        ids[3]: "delivered",
    }
