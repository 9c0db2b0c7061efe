"""Nobody passes unnamed: a route is closed unless its ``opt`` says ``public``."""

from typing import Any
from uuid import UUID

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec.structs import replace

from shared.caller import Caller, Identify
from shared.errors import Forbidden, Invalid, Unauthenticated
from shared.ids import AccountId

PUBLIC = {"public": True}


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


def operators_only(connection: ASGIConnection[Any, Caller, Any, Any], _: BaseRouteHandler) -> None:
    if not connection.user.is_operator:
        raise OperatorsOnly


class Authentication:
    """Litestar middleware: names the caller before anything else happens."""

    def __init__(self, app: ASGIApp, identify: Identify) -> None:
        self._app = app
        self._identify = identify

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "public" not in scope["route_handler"].opt:
            scope["user"] = await self._caller(scope)
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
