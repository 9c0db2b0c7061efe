"""Request bodies against a real server: rejected without a connection reset and in bounded memory."""

import asyncio
from pathlib import Path

import pytest

from tests.support.application import servers

MIB = 1_048_576
PIECE = b" " * 65_536
BUSINESSES, WEBHOOK = "/v1/business-profiles", "/v1/webhooks/stripe"
CONNECTIONS = 600
GROWTH_BYTES_MAX = (
    200 * MIB
)  # the bodies of unauthenticated clients may occupy 32 MiB, and buffers as much again


@pytest.fixture(scope="module")
async def port(addresses, place):
    async with servers(addresses, place) as start:
        _, port = await start()
        yield port


def head(path, token=None, *, length=None):
    """Headers of a POST; without a length the body is chunked."""
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    authorization = [f"Authorization: Bearer {token}"] if token else []
    lines = [f"POST {path} HTTP/1.1", "Host: test", "Content-Type: application/json", framing, *authorization]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


async def whole(port, path, size, token=None, *, is_chunked=False):
    """The response to a client that sends its whole body before it reads. Raises on a reset."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head(path, token, length=None if is_chunked else size))
    for _ in range(size // len(PIECE)):
        writer.write(b"%x\r\n%s\r\n" % (len(PIECE), PIECE) if is_chunked else PIECE)
        await writer.drain()
    writer.write(b"0\r\n\r\n" if is_chunked else b"")
    await writer.drain()
    async with asyncio.timeout(30):
        start = await reader.readuntil(b"\r\n\r\n")
        length = int(start.lower().partition(b"content-length: ")[2].split()[0])
        response = start + await reader.readexactly(length)
    writer.close()
    return response


@pytest.mark.parametrize("is_chunked", [False, True], ids=["content-length", "chunked"])
async def test_body_above_its_limit_gets_413_without_a_reset(port, token, is_chunked):
    responses = [await whole(port, BUSINESSES, 12 * MIB, token(), is_chunked=is_chunked) for _ in range(3)]

    assert [response.partition(b"\r\n")[0] for response in responses] == [
        b"HTTP/1.1 413 Payload Too Large"
    ] * 3
    assert all(b"body_too_large" in response for response in responses)


@pytest.mark.parametrize(
    ("path", "status"), [(BUSINESSES, b"401"), ("/nothing/here", b"404"), (WEBHOOK, b"400")]
)
async def test_refused_body_within_its_limit_gets_its_response_without_a_reset(port, path, status):
    response = await whole(port, path, MIB)

    assert response.split()[1] == status


async def test_missing_credentials_are_refused_before_the_body_is_sent(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head(BUSINESSES, length=MIB))

    async with asyncio.timeout(5):  # the body's own deadline is 10 s
        status = await reader.readuntil(b"\r\n")

    assert status == b"HTTP/1.1 401 Unauthorized\r\n"
    writer.close()


def reset_peak(process):
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")


def resident_bytes(process, line):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return 1_024 * int(status.partition(f"{line}:")[2].split()[0])


@pytest.mark.battery
@pytest.mark.parametrize("path", [BUSINESSES, WEBHOOK])
async def test_600_unauthenticated_bodies_do_not_fill_the_memory(start, path):
    """Each client sends all of its body but the last byte."""
    process, port = await start()
    reset_peak(process)
    before = resident_bytes(process, "VmRSS")

    async def send():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(path, length=MIB) + b" " * (MIB - 1))
        await writer.drain()
        line = await reader.readuntil(b"\r\n")
        writer.close()
        return line.split()[1]

    async with asyncio.timeout(60):
        statuses = await asyncio.gather(*(send() for _ in range(CONNECTIONS)))

    assert set(statuses) <= {b"401", b"408", b"429", b"503"}
    assert resident_bytes(process, "VmHWM") - before < GROWTH_BYTES_MAX
