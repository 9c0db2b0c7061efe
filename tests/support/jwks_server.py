"""JWKS server with settable responses and recorded requests."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress


class KeyServer:
    """Answers every request with ``document`` and records it. A cleared ``gate`` holds responses back."""

    def __init__(self):
        self.document = b'{"keys": []}'
        self.status = "200 OK"
        self.headers = ""
        self.drips = False  # sends an endless body byte by byte
        self.paths = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._server = None
        self.url = ""

    def publish(self, *jwks):
        self.document = json.dumps({"keys": list(jwks)}).encode()

    async def start(self, port=0):
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/jwks.json"

    async def stop(self):
        self.gate.set()
        self.drips = False
        self._server.close()
        await self._server.wait_closed()

    async def restart(self):
        await self.start(int(self.url.split(":")[2].split("/")[0]))

    async def _answer(self, reader, writer):
        request = await reader.readuntil(b"\r\n\r\n")
        self.paths.append(request.split()[1].decode())
        await self.gate.wait()
        head = f"HTTP/1.1 {self.status}\r\nContent-Length: {len(self.document)}\r\n{self.headers}"
        with suppress(ConnectionError):  # the client may have closed the connection
            if self.drips:
                head = f"HTTP/1.1 {self.status}\r\n"
            writer.write(f"{head}Connection: close\r\n\r\n".encode())
            while self.drips:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
            writer.write(self.document)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def key_server():
    server = KeyServer()
    await server.start()
    yield server
    await server.stop()
