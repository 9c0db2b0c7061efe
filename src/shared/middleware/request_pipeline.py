"""Authentication, rate limits, authorization and idempotency of a request.

It is a Litestar middleware because it needs the route, and one layer because each layer costs time.
"""

from functools import partial
from typing import Protocol

from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from shared.caller import AuthContext, Caller
from shared.errors import Unauthenticated
from shared.http.allow_header import answer_options
from shared.http.route_policy import OPERATORS_ONLY, SIGNED_IN, UNCOUNTED
from shared.http.strict_parameters import check_address
from shared.ids import AccountId
from shared.middleware.audit_log import AuditRecorder
from shared.middleware.client_address import client_address
from shared.middleware.credential_redaction import current_credentials
from shared.middleware.idempotency import HEADER as IDEMPOTENCY_KEY
from shared.middleware.idempotency import Idempotency
from shared.middleware.rate_limits import FREE, RateLimits
from shared.middleware.request_body import RequestBody
from shared.middleware.request_context import RequestContext, context_of


class Authenticator(Protocol):
    async def authenticate(self, authorization: bytes, account: bytes | None) -> AuthContext:
        """Identify the caller from Authorization and Oslira-Account. Raises Unauthenticated."""
        ...

    async def authorize(self, caller: Caller, access: str, account_id: AccountId | None) -> Caller:
        """Authorize the caller for a route with that policy. Raises Forbidden or NotFound."""
        ...


class TokenMissing(Unauthenticated):
    code = "token_missing"
    text = "Send an access token or an API key: Authorization: Bearer <token>."


class RequestPipeline:
    def __init__(
        self,
        app: ASGIApp,
        authenticator: Authenticator,
        rate_limits: RateLimits,
        idempotency: Idempotency,
        audit: AuditRecorder,
        proxy_hops: int,
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._rate_limits = rate_limits
        self._idempotency = idempotency
        self._audit = audit
        self._proxy_hops = proxy_hops

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "there are no websockets"
        marks = scope["route_handler"].opt
        if scope["method"] == "OPTIONS" and marks.get("access") != "public":
            marks = SIGNED_IN  # every authenticated caller; Litestar's own handler has no policy
        access: str = marks["access"]
        context = context_of(scope)
        route_class: str | None = marks.get("route_class")  # "" is UNCOUNTED
        if access == "public":
            await self._run_public(scope, receive, send, context, route_class)
            return
        authorization, account, key = _headers(scope)
        current_credentials.set((authorization.rpartition(b" ")[2], key or b""))
        auth = context.auth = await self._authenticate(scope, context, authorization, account)
        await self._count_caller(scope, context, auth, route_class)
        account_id = scope["path_params"].get("account_id")
        caller = scope["user"] = await self._authenticator.authorize(auth.caller, access, account_id)
        enter = self._enter
        if key is not None and scope["method"] == "POST":
            enter = partial(self._idempotency.run, self._enter, caller=caller, key=key)
        if access == OPERATORS_ONLY["access"]:
            enter = partial(self._audit.run, enter, caller=caller)
        if context.body is not None:  # read only after authorization, because the body occupies memory
            enter = partial(_with_body, enter, body=context.body, is_authenticated=True)
        await enter(scope, receive, send)

    async def _run_public(
        self, scope: HTTPScope, receive: Receive, send: Send, context: RequestContext, route_class: str | None
    ) -> None:
        if route_class != UNCOUNTED["route_class"]:
            await self._count_address(scope, context, route_class or "public")
        enter = self._enter
        if context.body is not None:
            enter = partial(_with_body, enter, body=context.body, is_authenticated=False)
        await enter(scope, receive, send)

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "there are no websockets"
        check_address(scope)
        if scope["method"] == "OPTIONS":
            await answer_options(scope, send)
        else:
            await self._app(scope, receive, send)

    async def _authenticate(
        self, scope: HTTPScope, context: RequestContext, authorization: bytes, account: bytes | None
    ) -> AuthContext:
        try:
            if not authorization:
                raise TokenMissing
            return await self._authenticator.authenticate(authorization, account)
        except Unauthenticated as error:
            if error.is_counted:
                await self._count_address(scope, context, "public")
            raise

    async def _count_caller(
        self, scope: HTTPScope, context: RequestContext, auth: AuthContext, route_class: str | None
    ) -> None:
        if route_class is None:
            route_class = "read" if scope["method"] == "GET" else "write"
        if route_class:
            await self._rate_limits.count(context, auth.rate_limit_key, auth.plan, route_class)

    async def _count_address(self, scope: HTTPScope, context: RequestContext, route_class: str) -> None:
        address = client_address(scope, self._proxy_hops)
        await self._rate_limits.count(context, address, FREE, route_class)


async def _with_body(
    enter: ASGIApp,
    scope: HTTPScope,
    _receive: Receive,
    send: Send,
    *,
    body: RequestBody,
    is_authenticated: bool,
) -> None:
    whole = await body.read(is_authenticated=is_authenticated)
    if whole is not None:  # None: the client closed the connection
        await enter(scope, whole, send)


def _headers(scope: HTTPScope) -> tuple[bytes, bytes | None, bytes | None]:
    """Return Authorization, Oslira-Account and Idempotency-Key in one pass over the headers.

    A repeated header forms one list (RFC 9110, 5.3), and a list is not valid for any of the three.
    """
    authorization = account = idempotency_key = None
    for name, value in scope["headers"]:
        if name == b"authorization":
            authorization = _listed(authorization, value)
        elif name == b"oslira-account":
            account = _listed(account, value)
        elif name == IDEMPOTENCY_KEY:
            idempotency_key = _listed(idempotency_key, value)
    return authorization or b"", account, idempotency_key


def _listed(before: bytes | None, value: bytes) -> bytes:
    return value if before is None else before + b", " + value
