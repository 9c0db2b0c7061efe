"""Middleware around every simulator: counts requests, adds latency, marks responses and applies faults."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress

import msgspec
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from simulators.faults import corrupt_responses as corrupt
from simulators.faults.buffered_response import (
    BufferedResponse,
    buffer_response,
    new_response,
    provider_of,
    send_body_part,
    send_response,
    send_start,
)
from simulators.faults.faults import Fault, Faults
from simulators.faults.latency import Latencies
from simulators.faults.tcp_reset import reset_connection

PAGE = b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>"
FLUSH_S = 0.05  # time for sent bytes to leave before the connection is reset

encode = msgspec.json.encode
Exchange = tuple[HTTPScope, Receive, Send]
_OBJECT_ROUTE = re.compile(r"/(actor-runs|datasets|admin/users)/[^/]+")
_STRIPE_ID = re.compile(r"(?<=/)[a-z_]+_[0-9A-Za-z]{14,}")


class RequestCounter:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.in_flight: Counter[str] = Counter()

    @contextmanager
    def counted(self, method: str, path: str) -> Generator[None]:
        """Counts routes with an id together. A request is in flight until its response, or its disconnect."""
        route = f"{method} " + _STRIPE_ID.sub("{id}", _OBJECT_ROUTE.sub(r"/\1/{id}", path.rstrip("/")))
        self.counts[route] += 1
        self.in_flight[route] += 1
        try:
            yield
        finally:
            self.in_flight[route] -= 1


class FaultMiddleware:
    """ASGI middleware. Control routes pass through without faults, latency or counting."""

    def __init__(self, app: ASGIApp, faults: Faults, latencies: Latencies, requests: RequestCounter) -> None:
        self._app = app
        self._faults = faults
        self._latencies = latencies
        self._requests = requests
        self._transport_faults: dict[str, Callable[[Fault, Exchange], Awaitable[None]]] = {
            "timeout": self._hang,
            "reset": self._reset,
            "reset_midway": self._reset_midway,
            "drip": self._drip,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "the server speaks nothing else"
        path = scope["path"]
        if path.startswith("/_"):  # control routes for tests, not a provider's
            await self._app(scope, receive, send)
            return
        with self._requests.counted(scope["method"], path):
            await self._serve((scope, receive, send), path)

    async def _serve(self, exchange: Exchange, path: str) -> None:
        scope, receive, send = exchange
        fault = self._faults.take(scope["method"], path)
        await asyncio.sleep((fault.delay_ms / 1_000 if fault else 0) + self._latencies.draw_s(path))
        if fault is not None and fault.kind in self._transport_faults:
            await self._transport_faults[fault.kind](fault, exchange)
            return
        response = await self._respond(fault, scope, receive)
        await send_response(send, response.with_headers(x_oslira_simulator=provider_of(path)))

    async def _respond(self, fault: Fault | None, scope: HTTPScope, receive: Receive) -> BufferedResponse:
        path = scope["path"]
        if fault is not None and fault.kind in {"status", "empty", "html", "error_in_200"}:
            replacement = _replacement(fault, path)
            if replacement is not None:
                return replacement.with_headers(**fault.headers)
        response = await buffer_response(self._app, scope, receive)
        if fault is None:
            return response
        return _corrupted(fault, path, response).with_headers(**fault.headers)

    async def _hang(self, _: Fault, exchange: Exchange) -> None:
        """Waits until the client disconnects."""
        while (await exchange[1]())["type"] != "http.disconnect":
            pass

    async def _reset(self, fault: Fault, exchange: Exchange) -> None:
        reset_connection(exchange[0])
        await self._hang(fault, exchange)

    async def _reset_midway(self, fault: Fault, exchange: Exchange) -> None:
        scope, receive, send = exchange
        response = await buffer_response(self._app, scope, receive)
        await send_start(send, response.with_headers(content_length=str(len(response.body))))
        await send_body_part(send, response.body[: len(response.body) // 2], is_last=False)
        await asyncio.sleep(FLUSH_S)
        await self._reset(fault, exchange)

    async def _drip(self, fault: Fault, exchange: Exchange) -> None:
        scope, receive, send = exchange
        response = await buffer_response(self._app, scope, receive)
        response = response.with_headers(
            content_length=str(len(response.body)), x_oslira_simulator=provider_of(scope["path"])
        )
        await send_start(send, response)
        gone = asyncio.ensure_future(self._hang(fault, exchange))
        for byte in response.body:
            await send_body_part(send, bytes([byte]), is_last=False)
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(gone), fault.interval_ms / 1_000)
                return  # the client has disconnected
        gone.cancel()
        await send_body_part(send, b"", is_last=True)


def _replacement(fault: Fault, path: str) -> BufferedResponse | None:
    """Returns None when the provider's own response must be sent."""
    if fault.kind == "html":
        return new_response(fault.status or 502, PAGE, "text/html; charset=utf-8")
    if fault.kind == "empty":
        return new_response(fault.status or 200, b"")
    if fault.kind == "error_in_200":
        return new_response(200, encode(corrupt.error_document(path, 500, fault.code)))
    if fault.status is None:
        return None
    if fault.code is not None:
        return new_response(fault.status, encode(corrupt.error_document(path, fault.status, fault.code)))
    return new_response(fault.status, fault.body.encode())


def _corrupted(fault: Fault, path: str, response: BufferedResponse) -> BufferedResponse:
    if fault.kind == "status":
        return response
    if fault.kind == "truncated":
        return response.with_body(response.body[: len(response.body) // 2])
    try:
        document = msgspec.json.decode(response.body)
    except msgspec.DecodeError:
        document = None
    if fault.kind == "duplicate":
        twice = corrupt.duplicated(document)
        return response.with_body(response.body * 2 if twice is None else encode(twice))
    change = corrupt.refused if fault.kind == "refusal" else corrupt.with_wrong_schema
    return response.with_body(encode(change(path, document)))
