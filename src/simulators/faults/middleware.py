"""Middleware around every simulator: counts requests, adds latency, marks responses and applies faults."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from simulators.faults import corrupt_responses as spoiled
from simulators.faults.buffered_response import (
    BufferedResponse,
    answer_of,
    provider_of,
    send_part,
    send_start,
    send_whole,
    whole_answer,
)
from simulators.faults.faults import Fault, Faults
from simulators.faults.latency import Latencies
from simulators.faults.request_counter import RequestCounter
from simulators.faults.tcp_reset import reset_connection

PAGE = b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>"
LEAVE_S = 0.05  # time for sent bytes to leave before the connection is reset

encode = msgspec.json.encode
Exchange = tuple[HTTPScope, Receive, Send]


class FaultMiddleware:
    """ASGI middleware. Control routes pass through without faults, latency or counting."""

    def __init__(self, app: ASGIApp, faults: Faults, latencies: Latencies, requests: RequestCounter) -> None:
        self._app = app
        self._faults = faults
        self._latencies = latencies
        self._requests = requests
        self._instead: dict[str, Callable[[Fault, Exchange], Awaitable[None]]] = {
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
        if fault is not None and fault.kind in self._instead:
            await self._instead[fault.kind](fault, exchange)
            return
        answer = await self._answer(fault, scope, receive)
        await send_whole(send, answer.with_headers(x_oslira_simulator=provider_of(path)))

    async def _answer(self, fault: Fault | None, scope: HTTPScope, receive: Receive) -> BufferedResponse:
        path = scope["path"]
        if fault is not None and fault.kind in {"status", "empty", "html", "error_in_200"}:
            instead = _without_asking(fault, path)
            if instead is not None:
                return instead.with_headers(**fault.headers)
        answer = await whole_answer(self._app, scope, receive)
        if fault is None:
            return answer
        return _spoil(fault, path, answer).with_headers(**fault.headers)

    async def _hang(self, _: Fault, exchange: Exchange) -> None:
        """Waits until the client disconnects."""
        while (await exchange[1]())["type"] != "http.disconnect":
            pass

    async def _reset(self, fault: Fault, exchange: Exchange) -> None:
        reset_connection(exchange[0])
        await self._hang(fault, exchange)

    async def _reset_midway(self, fault: Fault, exchange: Exchange) -> None:
        scope, receive, send = exchange
        answer = await whole_answer(self._app, scope, receive)
        await send_start(send, answer.with_headers(content_length=str(len(answer.body))))
        await send_part(send, answer.body[: len(answer.body) // 2], is_last=False)
        await asyncio.sleep(LEAVE_S)
        await self._reset(fault, exchange)

    async def _drip(self, fault: Fault, exchange: Exchange) -> None:
        scope, receive, send = exchange
        answer = await whole_answer(self._app, scope, receive)
        answer = answer.with_headers(
            content_length=str(len(answer.body)), x_oslira_simulator=provider_of(scope["path"])
        )
        await send_start(send, answer)
        gone = asyncio.ensure_future(self._hang(fault, exchange))
        for byte in answer.body:
            await send_part(send, bytes([byte]), is_last=False)
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(gone), fault.interval_ms / 1_000)
                return  # the client has disconnected
        gone.cancel()
        await send_part(send, b"", is_last=True)


def _without_asking(fault: Fault, path: str) -> BufferedResponse | None:
    """Returns None when the provider's own response must be sent."""
    if fault.kind == "html":
        return answer_of(fault.status or 502, PAGE, "text/html; charset=utf-8")
    if fault.kind == "empty":
        return answer_of(fault.status or 200, b"")
    if fault.kind == "error_in_200":
        return answer_of(200, encode(spoiled.error_document(path, 500, fault.code)))
    if fault.status is None:
        return None
    if fault.code is not None:
        return answer_of(fault.status, encode(spoiled.error_document(path, fault.status, fault.code)))
    return answer_of(fault.status, fault.body.encode())


def _spoil(fault: Fault, path: str, answer: BufferedResponse) -> BufferedResponse:
    if fault.kind == "status":
        return answer
    if fault.kind == "truncated":
        return answer.with_body(answer.body[: len(answer.body) // 2])
    try:
        document = msgspec.json.decode(answer.body)
    except msgspec.DecodeError:
        document = None
    if fault.kind == "duplicate":
        twice = spoiled.doubled(document)
        return answer.with_body(answer.body * 2 if twice is None else encode(twice))
    change = spoiled.declined if fault.kind == "refusal" else spoiled.misshapen
    return answer.with_body(encode(change(path, document)))
