"""A proxy between the application and the simulated Stripe that delays requests and webhooks at random."""

import asyncio
import random
from contextlib import suppress

import httpx

from tests.support.scripted_server import http, read_request

EVENTS_PATH = "/v1/webhooks/stripe"
KEPT = ("authorization", "content-type", "idempotency-key", "stripe-version", "stripe-signature")


class DelayingProxy:
    """Forwards Stripe's API to the simulator and the simulator's webhooks to the application. Each direction
    takes 0 to ``delay_s_max`` seconds, so that requests and events overtake each other.
    """

    def __init__(self, stripe_url):
        self.stripe_url = stripe_url
        self.application = None  # HTTP client of the application, set once it is built
        self.delay_s_max = 0.0
        self._random = random.Random()
        self._serving = {}

    def delay(self, delay_s_max, seed):
        self.delay_s_max = delay_s_max
        self._random.seed(seed)

    async def __aenter__(self):
        self._http = httpx.AsyncClient(timeout=30, trust_env=False)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for writer in self._serving.values():
            writer.transport.abort()
        await asyncio.gather(*self._serving)
        await self._http.aclose()

    async def _serve(self, reader, writer):
        self._serving[asyncio.current_task()] = writer
        try:
            while True:
                request = await read_request(reader)
                await self._pause()
                answer = await self._forward(request)
                await self._pause()
                writer.write(http(answer.status_code, answer.content))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has closed the connection
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            del self._serving[asyncio.current_task()]

    async def _pause(self):
        await asyncio.sleep(self._random.uniform(0, self.delay_s_max))

    async def _forward(self, request):
        headers = {name: request.headers[name] for name in KEPT if name in request.headers}
        if request.path == EVENTS_PATH:
            return await self.application.post(EVENTS_PATH, content=request.body, headers=headers)
        url = self.stripe_url + request.path
        return await self._http.request(request.method, url, content=request.body, headers=headers)
