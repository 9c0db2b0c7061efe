"""The way in: who calls, how often, whether they may, and whether they have asked before.

A Litestar middleware, because it has to know the route. One layer, because each layer costs.
"""

from typing import Protocol
from uuid import UUID

from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send
from msgspec.structs import replace

from shared.caller import AccountNotFound, Caller
from shared.errors import Invalid, Unauthenticated
from shared.ids import AccountId
from shared.middleware.client_address import client_address
from shared.middleware.credentials import current_credentials
from shared.middleware.idempotency import HEADER as IDEMPOTENCY_KEY
from shared.middleware.idempotency import Idempotency
from shared.middleware.passage import Passage, passage_of
from shared.middleware.rate_limits import FREE, RateLimits


class Doorkeeper(Protocol):
    async def identify(self, authorization: str) -> Caller:
        """From the Authorization header's value to the caller; raises Unauthenticated."""
        ...

    async def plan(self, caller: Caller) -> tuple[AccountId | None, str]:
        """The account meant, where it is known, and its plan: for counting, so not the very latest."""
        ...

    async def admit(self, caller: Caller, access: str, account_id: AccountId | None) -> Caller:
        """Raises Forbidden or NotFound unless the caller may pass a route with that mark."""
        ...


class TokenMissing(Unauthenticated):
    code = "token_missing"

    def __str__(self) -> str:
        return "Send an access token or an API key: Authorization: Bearer <token>."


class AccountHeaderInvalid(Invalid):
    code = "account_header_invalid"

    def __str__(self) -> str:
        return "The Oslira-Account header has to be the id of an account."


class Gate:
    def __init__(
        self,
        app: ASGIApp,
        doorkeeper: Doorkeeper,
        rate_limits: RateLimits,
        idempotency: Idempotency,
        proxy_hops: int,
    ) -> None:
        self._app = app
        self._doorkeeper = doorkeeper
        self._rate_limits = rate_limits
        self._idempotency = idempotency
        self._proxy_hops = proxy_hops

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "there are no websockets"
        marks = scope["route_handler"].opt
        # Litestar answers OPTIONS by itself, with a mark only where the whole controller has one.
        access: str = marks.get("access", "signed_in") if scope["method"] == "OPTIONS" else marks["access"]
        passage = passage_of(scope)
        route_class: str | None = marks.get("route_class")  # "" is UNCOUNTED
        if access == "public":
            if route_class is None:
                route_class = "public"
            if route_class:
                await self._count_address(scope, passage, route_class)
            await self._app(scope, receive, send)
            return
        headers = _Headers(scope)
        current_credentials.set((headers.authorization.rpartition(b" ")[2], headers.idempotency_key))
        caller = await self._identify(scope, passage, headers)
        account_id, plan = await self._doorkeeper.plan(caller)
        passage.caller, passage.account_id = caller, account_id
        if route_class is None:
            route_class = "read" if scope["method"] == "GET" else "write"
        if route_class:
            await self._rate_limits.count(passage, caller.actor, plan=plan, route_class=route_class)
        caller = await self._doorkeeper.admit(caller, access, scope["path_params"].get("account_id"))
        scope["user"] = caller
        if headers.idempotency_key and scope["method"] == "POST":
            key = headers.idempotency_key
            await self._idempotency.run(self._app, scope, receive, send, caller=caller, key=key)
        else:
            await self._app(scope, receive, send)

    async def _identify(self, scope: HTTPScope, passage: Passage, headers: "_Headers") -> Caller:
        try:
            if not headers.authorization:
                raise TokenMissing
            caller = await self._doorkeeper.identify(headers.authorization.decode("latin-1"))
        except Unauthenticated:
            await self._count_address(scope, passage, "public")
            raise
        return _with_account(caller, headers.account) if headers.account else caller

    async def _count_address(self, scope: HTTPScope, passage: Passage, route_class: str) -> None:
        address = client_address(scope, self._proxy_hops)
        await self._rate_limits.count(passage, address, plan=FREE, route_class=route_class)


class _Headers:
    """The three that matter here, found in one pass."""

    __slots__ = ("account", "authorization", "idempotency_key")

    def __init__(self, scope: HTTPScope) -> None:
        self.authorization = self.account = self.idempotency_key = b""
        for name, value in scope["headers"]:
            if name == b"authorization":
                self.authorization = value
            elif name == b"oslira-account":
                self.account = value
            elif name == IDEMPOTENCY_KEY:
                self.idempotency_key = value


def _with_account(caller: Caller, header: bytes) -> Caller:
    try:
        account_id = AccountId(UUID(header.decode("ascii")))
    except ValueError:
        raise AccountHeaderInvalid from None
    if caller.kind == "user":
        return replace(caller, chosen_account=account_id)
    if account_id != caller.chosen_account:  # a key has one account, whatever is asked for
        raise AccountNotFound
    return caller
