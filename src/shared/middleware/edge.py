"""What holds for every request, in one layer around the application, because each layer costs.

Request id in and out, security and CORS headers, and bodies that are whole, small, shallow JSON before
anything decodes them. Slow headers and idle connections are the server's business (see ``core.server``).
"""

import asyncio
import time
from http import HTTPStatus

import msgspec
from litestar.enums import HttpMethod
from litestar.types import (
    ASGIApp,
    HTTPReceiveMessage,
    HTTPRequestEvent,
    HTTPScope,
    Message,
    Receive,
    Scope,
    Send,
    WebSocketReceiveMessage,
)

from shared.middleware.analytics import Record, RequestPoint
from shared.middleware.cors import Cors, Headers
from shared.middleware.json_depth import depth_exceeds
from shared.middleware.passage import open_passage, passage_of
from shared.middleware.problems import MEDIA_TYPE, problem
from shared.middleware.request_id import HEADER, current_request_id, request_id_from

_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})
_CONTENT_LENGTH_DIGITS_MAX = 18
REFUSED_FROM = 400  # a plain number: this is compared for every request
CLIENT_GONE = 499  # nginx's number for a client that hung up before it was answered

ALWAYS_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
# Ours unless the handler has said otherwise.
DEFAULT_HEADERS: Headers = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
HSTS = (b"strict-transport-security", b"max-age=63072000; includeSubDomains")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    body_bytes_max: int = 1_048_576
    body_deadline_s: float = 10.0
    json_depth_max: int = 64


class _Refusal(Exception):
    def __init__(self, status: HTTPStatus, code: str, detail: str) -> None:
        super().__init__(status, code, detail)
        self.status, self.code, self.detail = status, code, detail


class _Gone(Exception):
    """The client hung up in the middle of its own body."""


class Edge:
    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        *,
        https_only: bool,
        record: Record,
        cors_origins: tuple[str, ...] = (),
        raw_paths: frozenset[str] = frozenset(),  # whose bodies the handler reads as they came
    ) -> None:
        self._app = app
        self._limits = limits
        self._record = record
        self._cors = Cors(cors_origins)
        self._raw_paths = raw_paths
        self._always = [*ALWAYS_HEADERS, HSTS] if https_only else ALWAYS_HEADERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s = time.perf_counter()
        request_id = request_id_from(scope["headers"])
        current_request_id.set(request_id)
        method = scope["method"]
        passage = open_passage(scope)
        status = CLIENT_GONE
        always = [*self._always, (HEADER, request_id.encode())]
        if self._cors:
            always += self._cors.answer_headers(_header(scope, b"origin"))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                nonlocal status
                status = message["status"]
                headers = list(message["headers"])
                present = {name for name, _ in headers}
                headers += [item for item in DEFAULT_HEADERS if item[0] not in present]
                headers += passage.answer_headers
                headers += always
                message["headers"] = headers
            await send(message)

        try:
            await self._answer(scope, receive, send_with_headers)
        finally:
            visit = passage.visit
            caller = visit.caller if visit else None
            self._record(
                RequestPoint(  # by position, which costs a third
                    time.time(),
                    method,
                    scope.get("path_template", ""),
                    status,
                    (time.perf_counter() - started_s) * 1_000,
                    visit.account_id if visit else None,
                    caller.kind if caller else None,
                    caller.id if caller else None,
                    request_id,
                    None if status < REFUSED_FROM else passage.code or _code_of(status),
                )
            )

    async def _answer(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        if method == "HEAD":  # a GET without the body, for every route
            scope["method"], send = HttpMethod.GET, _without_body(send)
        try:
            if method == "OPTIONS" and self._cors and _header(scope, b"access-control-request-method"):
                await self._preflight(scope, send)
            elif method in _WITHOUT_BODY:
                await self._app(scope, receive, send)
            else:
                body = await self._body(scope, receive)
                await self._app(scope, _replay(body, receive), send)
        except _Refusal as refusal:
            passage_of(scope).code = refusal.code
            await _refuse(send, refusal)
        except _Gone:
            return

    async def _preflight(self, scope: HTTPScope, send: Send) -> None:
        if not self._cors.knows(_header(scope, b"origin")):
            raise _Refusal(HTTPStatus.BAD_REQUEST, "origin_not_allowed", "This origin may not call us.")
        await _send(send, HTTPStatus.NO_CONTENT, self._cors.preflight_headers(), b"")

    async def _body(self, scope: HTTPScope, receive: Receive) -> bytes:
        self._check_length(_header(scope, b"content-length"))
        try:
            async with asyncio.timeout(self._limits.body_deadline_s):
                body = await self._read(receive)
        except TimeoutError:
            raise _Refusal(
                HTTPStatus.REQUEST_TIMEOUT, "body_too_slow", "The body took too long to arrive."
            ) from None
        if body and scope["path"] not in self._raw_paths:
            _check_media_type(_header(scope, b"content-type"))
            self._check_json(body)
        return body

    def _check_length(self, length: bytes) -> None:
        if not length:
            return
        if not length.isdigit():
            raise _Refusal(HTTPStatus.BAD_REQUEST, "invalid_request", "Content-Length is not a number.")
        if len(length) > _CONTENT_LENGTH_DIGITS_MAX or int(length) > self._limits.body_bytes_max:
            raise self._too_large()

    def _check_json(self, body: bytes) -> None:
        """What a decoder would stumble over; whether it is JSON at all is the decoder's to say."""
        if depth_exceeds(body, self._limits.json_depth_max):
            raise _Refusal(
                HTTPStatus.BAD_REQUEST,
                "json_too_deep",
                f"JSON may be nested {self._limits.json_depth_max} deep at the most.",
            )
        try:
            body.decode()
        except UnicodeDecodeError:
            raise _Refusal(HTTPStatus.BAD_REQUEST, "invalid_request", "The body is not UTF-8.") from None

    def _too_large(self) -> _Refusal:
        return _Refusal(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "body_too_large",
            f"A body may have {self._limits.body_bytes_max} bytes at the most.",
        )

    async def _read(self, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _Gone
            body += message.get("body", b"")
            if len(body) > self._limits.body_bytes_max:
                raise self._too_large()
            if not message.get("more_body"):
                return bytes(body)


def _code_of(status: int) -> str:
    """Where the answer is no problem document of this request: nobody was there, or it was given before."""
    return "client_gone" if status == CLIENT_GONE else f"status_{status}"


def _header(scope: HTTPScope, name: bytes) -> bytes:
    for candidate, value in scope["headers"]:
        if candidate == name:
            return value
    return b""


def _check_media_type(content_type: bytes) -> None:
    media_type, *parameters = content_type.lower().split(b";")
    charsets = [
        value.strip(b' "')
        for name, _, value in (parameter.partition(b"=") for parameter in parameters)
        if name.strip() == b"charset"
    ]
    if media_type.strip() != b"application/json" or charsets not in ([], [b"utf-8"]):
        raise _Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "Send the body as application/json in UTF-8.",
        )


def _without_body(send: Send) -> Send:
    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message["body"] = b""
        await send(message)

    return send_head


def _replay(body: bytes, receive: Receive) -> Receive:
    """Hand the body over as if it had arrived in one piece; afterwards only a disconnect can come."""
    whole: list[HTTPRequestEvent] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> HTTPReceiveMessage | WebSocketReceiveMessage:
        return whole.pop() if whole else await receive()

    return replay


async def _refuse(send: Send, refusal: _Refusal) -> None:
    content = msgspec.json.encode(problem(refusal.status, refusal.code, refusal.detail))
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"connection", b"close"),  # the rest of the body is not worth reading
    ]
    await _send(send, refusal.status, headers, content)


async def _send(send: Send, status: HTTPStatus, headers: Headers, content: bytes) -> None:
    headers = [*headers, (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": False})
