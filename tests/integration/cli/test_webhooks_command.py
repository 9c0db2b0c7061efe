import json

from features.webhooks.controllers.schemas import WebhookDeliveryResponse, WebhookEndpointResponse
from tests.integration.cli.responses import example
from tests.support.scripted_server import http

ENDPOINT = example(
    WebhookEndpointResponse,
    url="https://hooks.example/\u001b[31mx",
    types=["run.failed"],
    status="disabled",
    disabled_reason="gone",
)
DELIVERY = example(
    WebhookDeliveryResponse, type="run.failed", status="pending", attempts=2, last_error="timed_out"
)


async def test_endpoints_are_listed_with_their_state(server, oslira):
    server.script(http(200, {"items": [ENDPOINT], "next_cursor": None}))

    answer = await oslira("webhooks", "list")

    assert answer.exit_code == 0, answer.output
    assert ENDPOINT["id"] in answer.output
    assert all(text in answer.output for text in ("disabled", "gone", "run.failed"))
    assert "\u001b[31m" not in answer.output


async def test_empty_list_shows_the_next_step(server, oslira):
    server.script(http(200, {"items": [], "next_cursor": None}))

    for command, word in (("list", "oslira webhooks add"), ("deliveries", "oslira webhooks test")):
        assert word in (await oslira("webhooks", command)).output


async def test_stdout_contains_only_the_secret_of_an_added_endpoint(server, oslira):
    server.script(http(201, {**ENDPOINT, "secret": "whsec_x"}))

    answer = await oslira("webhooks", "add", "https://hooks.example", "--type", "run.failed")

    (asked,) = server.asked
    assert asked.json == {"url": "https://hooks.example", "types": ["run.failed"], "description": None}
    assert (answer.stdout, answer.exit_code) == ("whsec_x\n", 0)


async def test_an_endpoint_is_removed_and_tested_by_its_id(server, oslira):
    server.script(http(204), http(202, DELIVERY))

    removed = await oslira("webhooks", "remove", ENDPOINT["id"])
    tested = await oslira("webhooks", "test", ENDPOINT["id"])

    assert [asked.path for asked in server.asked] == [
        f"/v1/webhooks/endpoints/{ENDPOINT['id']}",
        f"/v1/webhooks/endpoints/{ENDPOINT['id']}/test",
    ]
    assert "Removed" in removed.output
    assert DELIVERY["id"] in tested.output


async def test_deliveries_are_listed_with_their_last_answer(server, oslira):
    server.script(http(200, {"items": [DELIVERY], "next_cursor": None}))

    shown = await oslira("webhooks", "deliveries", "--status", "pending", "--endpoint", ENDPOINT["id"])
    as_json = await oslira("webhooks", "deliveries", "--json")

    assert f"endpoint_id={ENDPOINT['id']}" in server.asked[0].path
    assert "status=pending" in server.asked[0].path
    assert "timed_out" in shown.output
    assert json.loads(as_json.stdout)["id"] == DELIVERY["id"]


async def test_problem_is_shown_in_the_servers_words(server, oslira):
    server.script(http(422, {"code": "webhook_url_invalid", "detail": "url: Use https://"}))

    answer = await oslira("webhooks", "add", "http://hooks.example")

    assert answer.exit_code == 1
    assert "url: Use https:// (webhook_url_invalid)" in answer.stderr
