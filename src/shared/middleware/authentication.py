"""Nobody passes unnamed: a route is closed unless it is marked as public."""

from collections.abc import Awaitable, Callable
from uuid import UUID

from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec.structs import replace

from shared.caller import Caller
from shared.errors import Forbidden, Invalid, Unauthenticated
from shared.ids import AccountId

Identify = Callable[[str], Awaitable[Caller]]
"""From the Authorization header's value to the caller; raises Unauthenticated."""


class TokenMissing(Unauthenticated):
    code = "token_missing"

    def __str__(self) -> str:
        return "Send an access token: Authorization: Bearer <token>."


class AccountHeaderInvalid(Invalid):
    code = "account_header_invalid"

    def __str__(self) -> str:
        return "The Oslira-Account header has to be the id of an account."


class OperatorsOnly(Forbidden):
    code = "operators_only"

    def __str__(self) -> str:
        return "This is for operators of the service."


class Authentication:
    """Litestar middleware: names the caller before anything else happens."""

    def __init__(self, app: ASGIApp, identify: Identify) -> None:
        self._app = app
        self._identify = identify

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        access = scope["route_handler"].opt["access"]
        if access != "public":
            caller = await self._caller(scope)
            if access == "operators_only" and not caller.is_operator:
                raise OperatorsOnly
            scope["user"] = caller
        await self._app(scope, receive, send)

    async def _caller(self, scope: Scope) -> Caller:
        authorization = chosen = b""
        for name, value in scope["headers"]:
            if name == b"authorization":
                authorization = value
            elif name == b"oslira-account":
                chosen = value
        if not authorization:
            raise TokenMissing
        caller = await self._identify(authorization.decode("latin-1"))
        return replace(caller, chosen_account=_account(chosen)) if chosen else caller


def _account(value: bytes) -> AccountId:
    try:
        return AccountId(UUID(value.decode("ascii")))
    except ValueError:
        raise AccountHeaderInvalid from None
