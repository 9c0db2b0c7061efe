"""Server that sends scripted bytes and records the requests."""

import asyncio
import json
import socket
import struct
from contextlib import suppress
from typing import NamedTuple


class Asked(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes
    method: str

    @property
    def json(self):
        return json.loads(self.body)


def http(status, body=b"", **headers):
    """Returns a whole response; underscores in header names become hyphens."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"content-type": "application/json", "content-length": str(len(body))}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} Scripted\r\n{head}\r\n".encode("latin-1") + body


# A response consists of steps: bytes, which are sent, and coroutine functions of the two streams.


async def hang_up(_, writer):
    """Closes the connection as a healthy server does."""
    writer.close()


async def reset(_, writer):
    """Closes the connection as a crashed server does: RST instead of FIN."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def stall(reader, _):
    """Sends nothing until the client disconnects."""
    await reader.read()


def drip(answer, *, every_s=0.02):
    """Sends one byte at a time, which no timeout between two bytes detects, and then never ends."""

    async def step(reader, writer):
        gone = asyncio.ensure_future(reader.read())
        for byte in answer + b" " * 1_000_000:
            writer.write(bytes((byte,)))
            await asyncio.wait([gone], timeout=every_s)
            if gone.done():
                return

    return step


class ScriptedServer:
    """Each request gets the next response of the script; the last one repeats."""

    def __init__(self):
        self.asked = []
        self.open_count = 0
        self.opened_count = 0
        self._script = []
        self._serving = {}

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for writer in self._serving.values():
            writer.transport.abort()
        await asyncio.gather(*self._serving)

    def script(self, *answers):
        """Each response is one step or a tuple of steps. Clears the recorded requests."""
        self._script = [answer if isinstance(answer, tuple) else (answer,) for answer in answers]
        self.asked.clear()

    async def _serve(self, reader, writer):
        self._serving[asyncio.current_task()] = writer
        self.open_count += 1
        self.opened_count += 1
        try:
            while not writer.is_closing():
                self.asked.append(await read_request(reader))
                answer = self._script.pop(0) if len(self._script) > 1 else self._script[0]
                for step in answer:
                    await (_send(writer, step) if isinstance(step, bytes) else step(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has disconnected, which is counted
        finally:
            self.open_count -= 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            del self._serving[asyncio.current_task()]


async def _send(writer, answer):
    writer.write(answer)
    await writer.drain()


async def read_request(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    headers = {name.lower(): value for name, value in headers.items()}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, path, _ = head[0].split(" ", 2)
    return Asked(path, headers, body, method)
