"""Tests of the commands' API client: decoding, problems and retries."""

import pytest

from core.cli.client import api_client as client_module
from core.cli.client.api_client import ApiProblem, NotAnOsliraServer, ServerUnreachable, open_api
from features.credits.domain.ledger import Balance
from tests.integration.cli.responses import example, problem
from tests.support import free_port
from tests.support.scripted_server import hang_up, http, reset

BALANCE = {**example(Balance, credits_available=20), "field_of_a_later_version": True}


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(client_module, "RETRY_TIMEOUT_S", 0.3)


async def test_unknown_response_fields_are_ignored(api, server):
    server.script(http(200, BALANCE))

    assert (await api.get("/v1/credits/balance", Balance)).credits_available == 20
    assert server.asked[0].headers["authorization"] == "Bearer token"


async def test_account_header_is_sent(server):
    server.script(http(200, BALANCE))
    async with open_api(server.url, "token", account="an-account") as api:
        await api.get("/v1/credits/balance", Balance)

    assert server.asked[0].headers["oslira-account"] == "an-account"


async def test_problem_shows_the_servers_text_and_code(api, server):
    server.script(problem(402, "insufficient_credits", "This needs 5 credits;\x1b[2J 1 is available."))

    with pytest.raises(ApiProblem) as refused:
        await api.post("/v1/analyses", Balance, {})

    assert refused.value.message == "This needs 5 credits;[2J 1 is available. (insufficient_credits)"
    assert (refused.value.status, refused.value.code) == (402, "insufficient_credits")


async def test_server_error_shows_the_request_id(api, server):
    server.script(problem(500, "internal_error", "This is our mistake."))

    with pytest.raises(ApiProblem, match=r"internal_error, request r-1"):
        await api.get("/v1/credits/balance", Balance)


async def test_error_without_a_problem_document_shows_its_status(api, server):
    server.script(http(404, b"<html>"))

    with pytest.raises(ApiProblem, match=r"^The server responded with status 404\.$"):
        await api.get("/v1/credits/balance", Balance)


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"credits_available": "x"}'])
async def test_response_of_another_server_is_not_a_traceback(api, server, body):
    server.script(http(200, body))

    with pytest.raises(NotAnOsliraServer, match="not Oslira"):
        await api.get("/v1/credits/balance", Balance)


@pytest.mark.parametrize(
    "first",
    [
        problem(429, "rate_limited", "Too fast.", retry_after="0"),
        problem(503, "database_unavailable", "Soon.", retry_after="0"),
        problem(409, "idempotency_key_in_flight", "Under way.", retry_after="0"),
        hang_up,
        (b"HTTP/1.1 202 Scripted\r\ncontent-le", reset),
    ],
    ids=["too fast", "unavailable", "in flight", "hung up", "crashed"],
)
async def test_retries_reuse_the_idempotency_key(api, server, first):
    server.script(first, http(200, BALANCE))

    answer = await api.post("/v1/analyses", Balance, {"username": "a"})

    assert answer.credits_available == 20
    keys = [asked.headers["idempotency-key"] for asked in server.asked]
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert [asked.json for asked in server.asked] == [{"username": "a"}] * 2


async def test_each_post_has_a_key_of_its_own(api, server):
    server.script(http(200, BALANCE))
    await api.post("/v1/analyses", Balance, {})
    await api.post("/v1/analyses", Balance, {})

    assert len({asked.headers["idempotency-key"] for asked in server.asked}) == 2


async def test_another_conflict_is_not_repeated(api, server):
    server.script(problem(409, "already_ended", "It has ended.", retry_after="0"))

    with pytest.raises(ApiProblem, match="already_ended"):
        await api.post("/v1/analyses", Balance, {})
    assert len(server.asked) == 1


async def test_long_retry_after_is_not_waited_for(api, server):
    server.script(problem(429, "rate_limited", "Too much.", retry_after="3600"))

    with pytest.raises(ApiProblem, match="Too much"):
        await api.get("/v1/credits/balance", Balance)
    assert len(server.asked) == 1


@pytest.mark.usefixtures("impatient")
async def test_lost_server_is_retried_until_the_time_limit(api, server):
    server.script(http(200, BALANCE), hang_up)
    await api.get("/v1/credits/balance", Balance)

    with pytest.raises(ServerUnreachable):
        await api.get("/v1/credits/balance", Balance)
    assert len(server.asked) > 2


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{port}", "ftp://127.0.0.1", "127.0.0.1:1", "http://[", "http://127.0.0.1:x"]
)
async def test_unreachable_server_is_reported_at_once_with_instructions(url):
    url = url.format(port=free_port())

    with pytest.raises(ServerUnreachable) as error:
        async with open_api(url, "token") as api:
            await api.get("/v1/credits/balance", Balance)

    assert f"No server responds at {url}." in error.value.message
    assert "oslira serve" in error.value.message
    assert "--url" in error.value.message
