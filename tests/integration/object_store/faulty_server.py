"""S3 server with scripted faults on a real socket."""

import asyncio
from contextlib import asynccontextmanager, suppress

ERROR = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>canary</Message></Error>"


def answer(status, body, *, length=None):
    size = len(body) if length is None else length
    head = f"HTTP/1.1 {status} Whatever\r\nContent-Type: application/xml\r\nContent-Length: {size}\r\n\r\n"
    return head.encode() + body.encode()


def refusal(status, code):
    return answer(status, ERROR.format(code=code))


ANSWERS = {
    "500": refusal(500, "InternalError"),
    "503": refusal(503, "SlowDown"),
    "denied": refusal(403, "AccessDenied"),
    "no bucket": refusal(404, "NoSuchBucket"),
    "odd code": refusal(400, "canary: a sentence / and more"),
    "bare 403": answer(403, ""),
    "html": answer(502, "<html><body>canary</body></html>"),
    "half": answer(200, "<half", length=5_000),
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "nonsense": b"canary\r\n\r\n",
}


class FaultyServer:
    """``faults`` are used in order; the last one repeats."""

    def __init__(self):
        self.faults = []
        self.requests = 0
        self._released = asyncio.Event()

    def begin(self, *faults):
        self.faults = list(faults)
        self.requests = 0

    async def serve(self, reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests += 1
            fault = self.faults.pop(0) if len(self.faults) > 1 else self.faults[0]
            is_head = head.startswith(b"HEAD")
            if fault == "hang":
                await self._released.wait()
            elif fault == "reset":
                writer.transport.abort()
            elif fault == "drip":
                await self._drip(writer)
            elif is_head and fault in ANSWERS:
                writer.write(ANSWERS[fault].partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
            else:
                writer.write(ANSWERS.get(fault) or answer(200, fault))
            await writer.drain()
        writer.close()

    async def _drip(self, writer):
        """Sends single bytes faster than any read timeout."""
        writer.write(answer(200, "", length=1_000_000))
        with suppress(TimeoutError):
            async with asyncio.timeout(60):
                while not self._released.is_set():
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.02)

    def release(self):
        self._released.set()


@asynccontextmanager
async def faulty_server():
    faulty = FaultyServer()
    server = await asyncio.start_server(faulty.serve, "127.0.0.1", 0)
    yield faulty, server.sockets[0].getsockname()[1]
    faulty.release()
    server.close()
