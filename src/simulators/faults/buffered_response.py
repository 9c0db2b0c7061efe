"""Buffered requests and responses for middleware between a client and a simulator."""

import msgspec
from litestar.types import (
    ASGIApp,
    HTTPReceiveMessage,
    HTTPScope,
    Message,
    Receive,
    Send,
    WebSocketReceiveMessage,
)


class BufferedResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def with_headers(self, **values: str) -> "BufferedResponse":
        """Replaces underscores in header names by dashes."""
        added = {name.lower().replace("_", "-").encode(): value.encode() for name, value in values.items()}
        kept = tuple(header for header in self.headers if header[0].lower() not in added)
        return msgspec.structs.replace(self, headers=kept + tuple(added.items()))

    def with_body(self, body: bytes) -> "BufferedResponse":
        return msgspec.structs.replace(self, body=body).with_headers(content_length=str(len(body)))


def new_response(
    status: int, body: bytes, content_type: str = "application/json", **headers: str
) -> BufferedResponse:
    empty = BufferedResponse(status=status, headers=(), body=b"")
    return empty.with_body(body).with_headers(content_type=content_type, **headers)


def provider_of(path: str) -> str:
    """Returns the provider of the path: the first segment is unique to each provider."""
    first = path.split("/", 2)[1]
    return {"auth": "supabase"}.get(first, first)


async def read_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Returns a ``receive`` that delivers the body again to an application behind the middleware."""
    is_read = False

    async def replay() -> HTTPReceiveMessage | WebSocketReceiveMessage:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def buffer_response(app: ASGIApp, scope: HTTPScope, receive: Receive) -> BufferedResponse:
    status, headers, parts = 500, (), list[bytes]()

    async def collect(message: Message) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = tuple((bytes(name), bytes(value)) for name, value in message["headers"])
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))

    await app(scope, receive, collect)
    return BufferedResponse(status=status, headers=headers, body=b"".join(parts))


async def send_start(send: Send, response: BufferedResponse) -> None:
    await send({"type": "http.response.start", "status": response.status, "headers": list(response.headers)})


async def send_body_part(send: Send, part: bytes, *, is_last: bool) -> None:
    await send({"type": "http.response.body", "body": part, "more_body": not is_last})


async def send_response(send: Send, response: BufferedResponse) -> None:
    await send_start(send, response)
    await send_body_part(send, response.body, is_last=True)
