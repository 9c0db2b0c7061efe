"""Simulated Cloudflare AI Gateway: both model providers behind one address, with its cache and its log."""

import hashlib
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, cast

import msgspec
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from simulators.faults.buffered_response import (
    BufferedResponse,
    buffer_response,
    new_response,
    read_body,
    replay_body,
    send_response,
)

PATH = "/cloudflare/v1/"
UPSTREAM = {"openai": "/openai/v1/", "anthropic": "/anthropic/"}  # Cloudflare's OpenAI has no /v1 of its own
METADATA_MAX = 5
CACHED_MAX = 1_000
LOGGED_MAX = 1_000
UNAUTHORIZED = {
    "success": False,
    "result": [],
    "messages": [],
    "error": [{"code": 2009, "message": "Unauthorized"}],
    "name": "AiGatewayError",
    "internalCode": 2009,
}
NO_ROUTE = {
    "success": False,
    "result": [],
    "messages": [],
    "error": [{"code": 2001, "message": "No such route"}],
}


class GatewayCall(msgspec.Struct, frozen=True, kw_only=True):
    log_id: str
    gateway: str
    provider: str
    path: str
    cache: str
    metadata: dict[str, Any]


class CloudflareGateway:
    def __init__(self, upstream: ASGIApp, *, now: Callable[[], float] = time.monotonic) -> None:
        self._upstream = upstream
        self._now = now
        self._cached: OrderedDict[bytes, tuple[float, BufferedResponse]] = OrderedDict()
        self.calls: deque[GatewayCall] = deque(maxlen=LOGGED_MAX)
        self.token = ""  # callers must send it, unless it is empty

    def clear(self) -> None:
        self._cached.clear()
        self.calls.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = cast("HTTPScope", scope)
        parts = scope["path"].removeprefix(PATH).split("/", 3)
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        if self.token and headers.get("cf-aig-authorization") != f"Bearer {self.token}":
            await send_response(send, new_response(401, msgspec.json.encode(UNAUTHORIZED)))
            return
        if len(parts) < 4 or parts[2] not in UPSTREAM:  # noqa: PLR2004
            await send_response(send, new_response(400, msgspec.json.encode(NO_ROUTE)))
            return
        body = await read_body(receive)
        log_id = uuid.uuid4().hex.upper()[:26]
        inner = UPSTREAM[parts[2]] + parts[3]
        response, cache = await self._respond(scope, headers, inner, body, receive)
        self.calls.append(
            GatewayCall(
                log_id=log_id,
                gateway="/".join(parts[:2]),
                provider=parts[2],
                path=inner,
                cache=cache,
                metadata=_metadata(headers.get("cf-aig-metadata", "")),
            )
        )
        await send_response(send, response.with_headers(cf_aig_cache_status=cache, cf_aig_log_id=log_id))

    async def _respond(
        self, scope: HTTPScope, headers: dict[str, str], path: str, body: bytes, receive: Receive
    ) -> tuple[BufferedResponse, str]:
        lifetime_s = _lifetime_s(headers)
        key = _key(headers, path, body)
        ends, known = self._cached.get(key, (0.0, None))
        if lifetime_s and known is not None and ends > self._now():
            return known, "HIT"
        inner = cast("HTTPScope", {**scope, "path": path, "raw_path": path.encode()})
        response = await buffer_response(self._upstream, inner, replay_body(body, receive))
        if lifetime_s and response.status == 200:  # noqa: PLR2004
            self._cached[key] = (self._now() + lifetime_s, response)
            if len(self._cached) > CACHED_MAX:
                self._cached.popitem(last=False)
        return response, "MISS"


def _lifetime_s(headers: dict[str, str]) -> float:
    """Returns 0 when the request neither reads nor writes the cache."""
    text = headers.get("cf-aig-cache-ttl", "")
    is_skipped = headers.get("cf-aig-skip-cache", "").lower() == "true"
    return float(text) if text.isdecimal() and not is_skipped else 0.0


def _key(headers: dict[str, str], path: str, body: bytes) -> bytes:
    own = headers.get("cf-aig-cache-key")
    keys = headers.get("authorization", "") + headers.get("x-api-key", "")
    text = own.encode() if own else b"\0".join((path.encode(), keys.encode(), body))
    return hashlib.sha256(text).digest()


def _metadata(text: str) -> dict[str, Any]:
    """Keeps the first five entries, as Cloudflare does; returns {} for text that is not a JSON object."""
    try:
        entries = msgspec.json.decode(text, type=dict[str, str | int | float | bool | None])
    except msgspec.DecodeError:
        return {}
    return dict(list(entries.items())[:METADATA_MAX])
