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
from shared.middleware.access import SIGNED_IN
from shared.middleware.addresses import UUID_TEXT, check_address
from shared.middleware.client_address import client_address
from shared.middleware.idempotency import HEADER as IDEMPOTENCY_KEY
from shared.middleware.idempotency import Idempotency
from shared.middleware.methods import answer_options
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
        if scope["method"] == "OPTIONS" and marks.get("access") != "public":
            marks = SIGNED_IN  # whoever is signed in may ask; Litestar's own handler carries no mark
        access: str = marks["access"]
        passage = passage_of(scope)
        if access == "public":
            if route_class := marks.get("route_class", "public"):
                await self._count_address(scope, passage, route_class)
            await self._enter(scope, receive, send)
            return
        headers = _Headers(scope)
        caller = await self._identify(scope, passage, headers)
        account_id, plan = await self._doorkeeper.plan(caller)
        passage.caller, passage.account_id = caller, account_id
        await self._rate_limits.count(
            passage,
            caller.actor,
            plan=plan,
            route_class=marks.get("route_class") or ("read" if scope["method"] == "GET" else "write"),
        )
        caller = await self._doorkeeper.admit(caller, access, scope["path_params"].get("account_id"))
        scope["user"] = caller
        key = headers.idempotency_key
        if key is not None and scope["method"] == "POST":
            await self._idempotency.run(self._enter, scope, receive, send, caller=caller, key=key)
        else:
            await self._enter(scope, receive, send)

    async def _enter(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        check_address(scope)
        if scope["method"] == "OPTIONS":
            await answer_options(scope, send)
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
        return caller if headers.account is None else _with_account(caller, headers.account)

    async def _count_address(self, scope: HTTPScope, passage: Passage, route_class: str) -> None:
        address = client_address(scope, self._proxy_hops)
        await self._rate_limits.count(passage, address, plan=FREE, route_class=route_class)


class _Headers:
    """The three that matter here, found in one pass. One sent twice is one list (RFC 9110, 5.3), and a list
    is none of the three.
    """

    __slots__ = ("account", "authorization", "idempotency_key")

    def __init__(self, scope: HTTPScope) -> None:
        self.authorization: bytes | None = None
        self.account: bytes | None = None
        self.idempotency_key: bytes | None = None
        for name, value in scope["headers"]:
            if name == b"authorization":
                self.authorization = _listed(self.authorization, value)
            elif name == b"oslira-account":
                self.account = _listed(self.account, value)
            elif name == IDEMPOTENCY_KEY:
                self.idempotency_key = _listed(self.idempotency_key, value)


def _listed(before: bytes | None, value: bytes) -> bytes:
    return value if before is None else before + b", " + value


def _with_account(caller: Caller, header: bytes) -> Caller:
    text = header.decode("latin-1")
    if not UUID_TEXT.fullmatch(text):
        raise AccountHeaderInvalid
    account_id = AccountId(UUID(text))
    if caller.kind == "user":
        return replace(caller, chosen_account=account_id)
    if account_id != caller.chosen_account:  # a key has one account, whatever is asked for
        raise AccountNotFound
    return caller
