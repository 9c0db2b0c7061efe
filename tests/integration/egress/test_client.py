"""Egress client over real sockets: destinations and limits of responses."""

import asyncio
import ssl

import pytest

from infrastructure.egress.ip_policy import IpPolicy
from infrastructure.egress.ssrf_guard import EgressFailed
from tests.support import free_port
from tests.support.scripted_server import drip, hang_up, http, reset, stall

POSTED = {"content-type": "application/json"}


def url_of(server, host="hooks.example"):
    return f"http://{host}:{server.url.rpartition(':')[2]}/hook?a=b"


async def test_request_goes_to_the_checked_address_with_the_host_header(client_of, server):
    server.script(http(201, b"thanks"))

    reply = await client_of().send("POST", url_of(server), POSTED, b'{"a":1}')

    assert (reply.status, reply.body, reply.is_whole) == (201, b"thanks", True)
    (asked,) = server.asked
    assert (asked.path, asked.body) == ("/hook?a=b", b'{"a":1}')
    assert asked.headers["host"] == url_of(server).split("/")[2]
    assert asked.headers["content-type"] == "application/json"


async def test_dns_rebinding_after_the_check_has_no_effect(client_of, server):
    """The checked address is used: a second lookup would return an internal one."""
    answers = [["127.0.0.1"], ["127.0.0.2"]]

    async def changes_its_mind(host, port):
        del host, port
        return answers.pop(0)

    server.script(http(200))
    await client_of(changes_its_mind).send("POST", url_of(server), POSTED)

    assert len(answers) == 1
    assert len(server.asked) == 1


async def test_host_that_now_resolves_to_a_private_address_is_rejected(client_of, server):
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    async def moves(host, port):
        del host, port
        return answers.pop(0)

    server.script(http(200))
    client = client_of(moves)
    await client.send("POST", url_of(server), POSTED)

    with pytest.raises(EgressFailed, match="address_forbidden"):
        await client.send("POST", url_of(server), POSTED)
    assert len(server.asked) == 1


async def test_no_connection_is_opened_to_a_private_address(client_of, server):
    client = client_of(policy=IpPolicy(https_only=False, ports=None))
    server.script(http(200))

    with pytest.raises(EgressFailed, match="address_forbidden"):
        await client.send("POST", url_of(server), POSTED)
    with pytest.raises(EgressFailed, match="address_forbidden"):
        await client.send("POST", server.url, POSTED)
    assert server.opened_count == 0


@pytest.mark.parametrize(
    "url", ["http://hooks.example", "https://hooks.example:22", "https://a@hooks.example"]
)
async def test_rejected_url_causes_no_lookup(client_of, url):
    asked = []

    async def resolve(host, port):
        asked.append((host, port))
        return ["127.0.0.1"]

    with pytest.raises(EgressFailed, match="address_forbidden"):
        await client_of(resolve, IpPolicy()).send("POST", url, POSTED)
    assert asked == []


async def test_next_address_is_tried_after_a_connection_error(client_of, server):
    async def two(host, port):
        del host, port
        return ["127.0.0.9", "127.0.0.1"]

    server.script(http(204))

    assert (await client_of(two).send("POST", url_of(server), POSTED)).status == 204


async def test_redirects_are_not_followed(client_of, server):
    server.script(http(302, location="http://10.0.0.1/"))

    reply = await client_of().send("POST", url_of(server), POSTED)

    assert (reply.status, reply.headers["location"]) == (302, "http://10.0.0.1/")
    assert len(server.asked) == 1


async def test_proxies_of_the_environment_are_ignored(client_of, server, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    server.script(http(200))

    assert (await client_of().send("POST", url_of(server), POSTED)).status == 200


async def test_long_response_is_truncated(client_of, server):
    server.script(http(200, b"x" * 200_000))

    reply = await client_of().send("POST", url_of(server), POSTED)

    assert (reply.status, len(reply.body), reply.is_whole) == (200, 65_536, False)


async def test_compressed_response_is_not_decompressed(client_of, server):
    server.script(http(200, b"\x1f\x8b" + b"\0" * 100, content_encoding="gzip"))

    assert len((await client_of().send("POST", url_of(server), POSTED)).body) == 102


async def test_response_with_endless_body_is_accepted_and_truncated(client_of, server):
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"
    server.script((head, drip(b"", every_s=0.01)))

    reply = await client_of(deadline_s=0.15).send("POST", url_of(server), POSTED)

    assert (reply.status, reply.is_whole) == (200, False)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (drip(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 60, every_s=0.01), "timed_out"),
        (stall, "timed_out"),
        (hang_up, "answer_malformed"),
        (reset, "connection_failed"),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "answer_malformed"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 30_000, "answer_malformed"),
    ],
    ids=["drips", "stalls", "hangs up", "resets", "speaks otherwise", "has endless headers"],
)
async def test_late_or_malformed_response_raises_egress_failed(client_of, server, answer, reason):
    server.script(answer)

    with pytest.raises(EgressFailed) as failure:
        await client_of(deadline_s=0.3).send("POST", url_of(server), POSTED)
    assert failure.value.reason == reason


async def test_deadline_includes_the_lookup(client_of, server):
    async def slow(host, port):
        del host, port
        await asyncio.Event().wait()

    with pytest.raises(EgressFailed, match="timed_out"):
        await client_of(slow, deadline_s=0.05).send("POST", url_of(server), POSTED)


async def test_refused_connection_raises_connection_failed(client_of):
    with pytest.raises(EgressFailed, match="connection_failed"):
        await client_of().send("POST", f"http://hooks.example:{free_port()}", POSTED)


async def test_certificate_is_verified_against_the_host_name(client_of, encrypted, certificate):
    port, names = encrypted
    trusted = ssl.create_default_context(cafile=certificate[0])

    reply = await client_of(ssl_context=trusted).send("POST", f"https://hooks.example:{port}/x", POSTED)

    assert reply.status == 204
    assert names[0] == "hooks.example"
    assert f"host: hooks.example:{port}" in names[1].lower()


@pytest.mark.parametrize("host", ["other.example", "127.0.0.1"])
async def test_certificate_of_another_host_is_rejected(client_of, encrypted, certificate, host):
    port, _ = encrypted
    trusted = ssl.create_default_context(cafile=certificate[0])

    with pytest.raises(EgressFailed, match="tls_failed"):
        await client_of(ssl_context=trusted).send("POST", f"https://{host}:{port}/x", POSTED)


async def test_untrusted_certificate_is_rejected(client_of, encrypted):
    port, _ = encrypted

    with pytest.raises(EgressFailed, match="tls_failed"):
        await client_of().send("POST", f"https://hooks.example:{port}/x", POSTED)
