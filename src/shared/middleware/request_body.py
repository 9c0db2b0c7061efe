"""Request bodies: read after authentication, within limits of size, time and memory."""

import asyncio
from contextlib import suppress

import msgspec
from litestar.types import (
    HTTPReceiveMessage,
    HTTPRequestEvent,
    HTTPScope,
    Receive,
    WebSocketReceiveMessage,
)

from shared.errors import Malformed, TooLarge, TooSlow, Unavailable, Unsupported
from shared.middleware.json_depth import depth_exceeds

_CONTENT_LENGTH_DIGITS_MAX = 18
BODIES_BYTES_MAX = 67_108_864
DISCARDS_MAX = 128  # concurrently: each occupies the server's buffers of one connection


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    body_bytes_max: int = 1_048_576
    body_deadline_s: float = 10.0
    json_depth_max: int = 64
    bodies_bytes_max: int = BODIES_BYTES_MAX  # of all requests of this process

    def __post_init__(self) -> None:
        assert self.bodies_bytes_max >= 2 * self.body_bytes_max, "half of it holds at least one body"


class BodyTooLarge(TooLarge):
    code = "body_too_large"
    text = "A body can have at most {bytes_max} bytes."


class BodyTooSlow(TooSlow):
    code = "body_too_slow"
    text = "The body took too long to arrive."


class BodiesTooMany(Unavailable):
    code = "too_many_bodies"
    text = "The server is receiving too many request bodies at the moment. Try again in 2 seconds."
    retry_after_s = 2


class MediaTypeUnsupported(Unsupported):
    code = "unsupported_media_type"
    text = "Send the body as application/json in UTF-8."


class JsonTooDeep(Malformed):
    code = "json_too_deep"
    text = "JSON can be nested at most {depth_max} levels deep."


class RequestInvalid(Malformed):
    code = "invalid_request"
    text = "{reason}"


class BodyMemory:
    """Bytes of request bodies that this process holds. Unauthenticated clients together get half of the
    limit, so that they cannot block the requests of tenants.
    """

    def __init__(self, bytes_max: int) -> None:
        self._free = bytes_max
        self._free_unauthenticated = bytes_max // 2
        self.discards = asyncio.Semaphore(DISCARDS_MAX)

    def take(self, size: int, *, is_authenticated: bool) -> None:
        """Raises BodiesTooMany."""
        if size > self._free or (not is_authenticated and size > self._free_unauthenticated):
            raise BodiesTooMany
        self._free -= size
        if not is_authenticated:
            self._free_unauthenticated -= size

    def release(self, size: int, *, is_authenticated: bool) -> None:
        self._free += size
        if not is_authenticated:
            self._free_unauthenticated += size


class RequestBody:
    """The body of one request. Nothing is received until ``read`` or ``discard`` is called."""

    __slots__ = (
        *("_content_type", "_deadline_s", "_is_authenticated", "_is_raw", "_is_received", "_length"),
        *("_limits", "_memory", "_receive", "_size"),
    )

    def __init__(
        self, scope: HTTPScope, receive: Receive, limits: Limits, memory: BodyMemory, *, is_raw: bool
    ) -> None:
        self._receive, self._limits, self._memory, self._is_raw = receive, limits, memory, is_raw
        self._deadline_s = asyncio.get_running_loop().time() + limits.body_deadline_s
        self._is_authenticated = False
        self._is_received = False
        self._size = 0
        self._content_type = b""
        self._length: bytes | None = None  # None: the request announces no body
        for name, value in scope["headers"]:
            if name == b"content-type":
                self._content_type = value
            elif name == b"content-length":
                self._length = value
            elif name == b"transfer-encoding" and self._length is None:
                self._length = b""

    @property
    def is_pending(self) -> bool:
        """Whether the client may have more to send."""
        return not self._is_received and self._length not in (None, b"0")

    def check_length(self) -> None:
        """Refuse by Content-Length alone. Raises RequestInvalid or BodyTooLarge."""
        length = self._length
        if not length:
            return
        if not length.isdigit():
            raise RequestInvalid(reason="Content-Length is not a number.")
        if len(length) > _CONTENT_LENGTH_DIGITS_MAX or int(length) > self._limits.body_bytes_max:
            raise BodyTooLarge(bytes_max=self._limits.body_bytes_max)

    async def read(self, *, is_authenticated: bool) -> Receive | None:
        """Return a ``receive`` that delivers the whole body as one message, or None when the client has
        closed the connection before its body was complete. Raises the reason why a body is refused.
        """
        self._is_authenticated = is_authenticated
        try:
            async with asyncio.timeout_at(self._deadline_s):
                body = await self._whole()
        except TimeoutError:
            raise BodyTooSlow from None
        if body is None:
            return None
        if body and not self._is_raw:
            _check_media_type(self._content_type)
            _check_json(body, self._limits.json_depth_max)
        return _replay(body, self._receive)

    async def _whole(self) -> bytes | None:
        body = bytearray()
        while not self._is_received:
            piece = await self._piece()
            if piece is None:
                return None
            body += piece
            if len(body) > self._limits.body_bytes_max:
                raise BodyTooLarge(bytes_max=self._limits.body_bytes_max)
            self._hold(len(body))
        return bytes(body)

    async def _piece(self) -> bytes | None:
        message = await self._receive()
        if message["type"] != "http.request":
            self._is_received = True
            return None
        self._is_received = not message.get("more_body")
        return message.get("body", b"")

    def _hold(self, size: int) -> None:
        self._memory.take(size - self._size, is_authenticated=self._is_authenticated)
        self._size = size

    def release(self) -> None:
        """Return the memory of the body; the request has ended."""
        self._memory.release(self._size, is_authenticated=self._is_authenticated)
        self._size = 0

    async def discard(self) -> None:
        """Receive and drop the rest of the body after the response.

        Closing a connection with unread bytes resets it, and a client that sends its whole body first would
        not see the response.
        """
        if not self.is_pending:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._deadline_s), self._memory.discards:
                while not self._is_received:
                    await self._piece()


def _check_media_type(content_type: bytes) -> None:
    media_type, *parameters = content_type.lower().split(b";")
    charsets = [
        value.strip(b' "')
        for name, _, value in (parameter.partition(b"=") for parameter in parameters)
        if name.strip() == b"charset"
    ]
    if media_type.strip() != b"application/json" or charsets not in ([], [b"utf-8"]):
        raise MediaTypeUnsupported


def _check_json(body: bytes, depth_max: int) -> None:
    """Reject input that a decoder cannot handle; the decoder reports invalid JSON."""
    if depth_exceeds(body, depth_max):
        raise JsonTooDeep(depth_max=depth_max)
    try:
        body.decode()
    except UnicodeDecodeError:
        raise RequestInvalid(reason="The body is not UTF-8.") from None


def _replay(body: bytes, receive: Receive) -> Receive:
    whole: list[HTTPRequestEvent] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> HTTPReceiveMessage | WebSocketReceiveMessage:
        return whole.pop() if whole else await receive()

    return replay
