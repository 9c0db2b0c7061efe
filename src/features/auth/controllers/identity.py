"""HTTP handlers that describe the caller."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example

from features.auth.application.accounts import CurrentUser
from features.auth.controllers.accounts import ACCOUNT_EXAMPLE, AccountResponse, account_out
from shared.caller import Caller, PrincipalKind
from shared.http.route_policy import SIGNED_IN
from shared.permissions import Permission


class VerifiedResponse(msgspec.Struct, frozen=True, kw_only=True):
    kind: PrincipalKind
    id: UUID
    email: str | None
    is_operator: bool


class MeResponse(msgspec.Struct, frozen=True, kw_only=True):
    kind: PrincipalKind
    id: UUID
    email: str | None
    is_operator: bool
    is_test: bool
    project: str | None
    account: AccountResponse | None
    permissions: list[Permission]


VERIFIED_EXAMPLE = {
    "kind": "user",
    "id": "0b6bd2b4-65d3-4f5c-a5b3-2f6f2a9d8c11",
    "email": "you@example.com",
    "is_operator": False,
}
ME_EXAMPLE = {
    **VERIFIED_EXAMPLE,
    "is_test": False,
    "project": None,
    "account": {**ACCOUNT_EXAMPLE, "role": "viewer"},
    "permissions": ["account:read", "business_profiles:read", "credits:read", "members:read"],
}


class IdentityController(Controller):
    path = "/v1"
    tags = ("Identity",)
    opt = SIGNED_IN

    @get(
        "/auth/verify",
        operation_id="verifyToken",
        summary="Verify",
        sync_to_thread=False,
        responses={
            200: ResponseSpec(
                VerifiedResponse, description="It is valid", examples=[Example(value=VERIFIED_EXAMPLE)]
            ),
        },
    )
    def verify(self, request: Request[Caller, Any, Any]) -> VerifiedResponse:
        """Whether the access token or API key is valid, and whose it is."""
        caller = request.user
        return VerifiedResponse(
            kind=caller.kind, id=caller.id, email=caller.email or None, is_operator=caller.is_operator
        )

    @get(
        "/me",
        operation_id="getMe",
        summary="CurrentUser",
        responses={
            200: ResponseSpec(MeResponse, description="The caller", examples=[Example(value=ME_EXAMPLE)]),
        },
    )
    async def show(self, request: Request[Caller, Any, Any], me: NamedDependency[CurrentUser]) -> MeResponse:
        """The caller, the account they act for, and what they may do there.

        `account` is null when you belong to several accounts and chose none, or to none.
        """
        caller = request.user
        account, permissions = await me.account_and_permissions(caller)
        return MeResponse(
            kind=caller.kind,
            id=caller.id,
            email=caller.email or None,
            is_operator=caller.is_operator,
            is_test=caller.is_test,
            project=caller.project,
            account=account_out(account) if account else None,
            permissions=permissions,
        )
