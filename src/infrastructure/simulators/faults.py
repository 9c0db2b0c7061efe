"""Faults on demand: what a provider answers on a bad day, and how long it takes."""

import asyncio
from typing import Annotated

import msgspec
from litestar import post
from litestar.datastructures import State
from litestar.params import JSONBody
from litestar.types import ASGIApp, Receive, Scope, Send

PATH = "/_faults"


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For the next ``times`` requests of a route: wait, then answer with the status, or as usual."""

    route: str  # the path, as /auth/v1/invite
    status: Annotated[int, msgspec.Meta(ge=200, le=599)] | None = None
    body: str = '{"message": "A fault was asked for."}'
    delay_ms: Annotated[int, msgspec.Meta(ge=0, le=600_000)] = 0
    times: Annotated[int, msgspec.Meta(ge=0)] = 1  # 0 takes a fault back


class Faults:
    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Fault, int]] = {}

    def set(self, fault: Fault) -> None:
        self._waiting[fault.route] = (fault, fault.times)

    def take(self, path: str) -> Fault | None:
        fault, times = self._waiting.get(path, (None, 0))
        if fault is None or times == 0:
            return None
        self._waiting[path] = (fault, times - 1)
        return fault


@post(PATH, status_code=204, sync_to_thread=False)
def set_fault(data: JSONBody[Fault], state: State) -> None:
    state.faults.set(data)


class FaultyAnswers:
    """ASGI middleware around every provider."""

    def __init__(self, app: ASGIApp, faults: Faults) -> None:
        self._app = app
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = self._faults.take(scope["path"]) if scope["type"] == "http" else None
        if fault is not None:
            await asyncio.sleep(fault.delay_ms / 1_000)
        if fault is None or fault.status is None:
            await self._app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": fault.status, "headers": headers})
        await send({"type": "http.response.body", "body": fault.body.encode(), "more_body": False})
