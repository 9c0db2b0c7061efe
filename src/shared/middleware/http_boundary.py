"""Rules for every request, in one layer around the application, because each layer costs time.

It handles the request id, security and CORS headers, body limits and the request log. RequestPipeline reads
the body after authentication (see ``shared.middleware.request_body``). The server limits slow headers and
idle connections (see ``core.processes.server``).
"""

import time
from http import HTTPStatus

import msgspec
from litestar.enums import HttpMethod
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from shared.errors import DomainError, Malformed
from shared.http.problems import MEDIA_TYPE, headers_of, problem, status_of
from shared.middleware.cors import Cors, Headers
from shared.middleware.request_body import BodyMemory, Limits, RequestBody
from shared.middleware.request_context import RequestContext, context_of, open_context
from shared.middleware.request_id import HEADER, current_request_id, request_id_from
from shared.middleware.request_log import Record, RequestLogEntry

_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})
ERROR_FROM = 400  # a plain int: compared on every request
CLIENT_GONE = 499  # nginx's status for a client that closed the connection before the response

ALWAYS_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
# Added unless the handler sets them.
DEFAULT_HEADERS: Headers = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
HSTS = (b"strict-transport-security", b"max-age=63072000; includeSubDomains")


class OriginNotAllowed(Malformed):
    code = "origin_not_allowed"
    text = "This origin is not allowed."


class HttpBoundary:
    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        *,
        https_only: bool,
        record: Record,
        cors_origins: tuple[str, ...] = (),
        raw_paths: frozenset[str] = frozenset(),  # the handler reads the raw body
    ) -> None:
        self._app = app
        self._limits = limits
        self._memory = BodyMemory(limits.bodies_bytes_max)
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
        context = open_context(scope)
        status = CLIENT_GONE
        always = self._headers_of(scope, request_id)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                nonlocal status
                status = message["status"]
                headers = list(message["headers"])
                present = {name for name, _ in headers}
                headers += [item for item in DEFAULT_HEADERS if item[0] not in present]
                headers += context.response_headers
                headers += always
                if context.body is not None and context.body.is_pending:
                    headers.append((b"connection", b"close"))  # see RequestBody.discard
                message["headers"] = headers
            await send(message)

        try:
            await self._respond(scope, receive, send_with_headers)
        finally:
            duration_ms = (time.perf_counter() - started_s) * 1_000
            self._record(
                _log_entry(context, method, scope.get("path_template", ""), status, duration_ms, request_id)
            )
        if context.body is not None:
            await context.body.discard()

    def _headers_of(self, scope: HTTPScope, request_id: str) -> Headers:
        headers = [*self._always, (HEADER, request_id.encode())]
        if self._cors:
            headers += self._cors.response_headers(_header(scope, b"origin"))
        return headers

    async def _respond(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        if method == "HEAD":  # a GET without the body, for every route
            scope["method"], send = HttpMethod.GET, _without_body(send)
        try:
            if method == "OPTIONS" and self._cors and _header(scope, b"access-control-request-method"):
                await self._preflight(scope, send)
            elif method in _WITHOUT_BODY:
                await self._app(scope, receive, send)
            else:
                await self._respond_with_body(scope, receive, send)
        except DomainError as error:
            context_of(scope).code = error.code
            await _send_problem(send, error)

    async def _respond_with_body(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        is_raw = scope["path"] in self._raw_paths
        body = RequestBody(scope, receive, self._limits, self._memory, is_raw=is_raw)
        context_of(scope).body = body
        try:
            body.check_length()
            await self._app(scope, receive, send)
        finally:
            body.release()

    async def _preflight(self, scope: HTTPScope, send: Send) -> None:
        if not self._cors.knows(_header(scope, b"origin")):
            raise OriginNotAllowed
        await _send(send, HTTPStatus.NO_CONTENT, self._cors.preflight_headers(), b"")


def _log_entry(
    context: RequestContext, method: str, route: str, status: int, duration_ms: float, request_id: str
) -> RequestLogEntry:
    auth = context.auth
    caller = auth.caller if auth else None
    return RequestLogEntry(  # positional arguments take a third of the time
        time.time(),
        method,
        route,
        status,
        duration_ms,
        auth.account_id if auth else None,
        caller.kind if caller else None,
        caller.id if caller else None,
        request_id,
        None if status < ERROR_FROM else context.code or _code_of(status),
    )


def _code_of(status: int) -> str:
    """Return the code of a response without a problem document: closed by the client, or replayed."""
    return "client_gone" if status == CLIENT_GONE else f"status_{status}"


def _header(scope: HTTPScope, name: bytes) -> bytes:
    for candidate, value in scope["headers"]:
        if candidate == name:
            return value
    return b""


def _without_body(send: Send) -> Send:
    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message["body"] = b""
        await send(message)

    return send_head


async def _send_problem(send: Send, error: DomainError) -> None:
    status, code = status_of(error)
    document = problem(status, code, str(error), facts=error.facts)
    headers = [(b"content-type", MEDIA_TYPE.encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in headers_of(error, status).items()]
    await _send(send, status, headers, msgspec.json.encode(document))


async def _send(send: Send, status: HTTPStatus, headers: Headers, content: bytes) -> None:
    headers = [*headers, (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": False})
