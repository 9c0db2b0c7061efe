"""HTTP handlers for a user's accounts."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg, FromPath, QueryParameter

from features.auth.application.accounts import Accounts
from features.auth.domain.memberships import NAME_LENGTH_MAX, NAME_PATTERN, Account
from features.auth.domain.roles import Role
from shared.caller import Caller
from shared.http.pagination_parameters import Cursor, Limit
from shared.http.problems import problem_responses
from shared.http.response_headers import LOCATION
from shared.http.route_policy import USERS_ONLY, needs
from shared.ids import AccountId
from shared.middleware.idempotency import effect_id

Name = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=NAME_LENGTH_MAX, pattern=NAME_PATTERN, examples=["Corner bakery"]),
]
Deleted = Annotated[
    bool, QueryParameter(description="List those that you own, deleted, and can still restore.")
]


class AccountRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name


AccountBody = Annotated[AccountRequest, BodyKwarg(examples=[Example(value={"name": "Corner bakery"})])]


class AccountResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    name: str
    plan: str
    role: Role | None
    created_at: datetime
    deleted_at: datetime | None


class AccountsResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[AccountResponse]
    next_cursor: str | None


ACCOUNT_EXAMPLE = {
    "id": "7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11",
    "name": "Corner bakery",
    "plan": "free",
    "role": "owner",
    "created_at": "2026-11-01T09:30:00Z",
    "deleted_at": None,
}
SHOWN = ResponseSpec(AccountResponse, description="The account", examples=[Example(value=ACCOUNT_EXAMPLE)])


def account_out(account: Account) -> AccountResponse:
    return AccountResponse(
        id=account.id,
        name=account.name,
        plan=account.plan,
        role=account.role,
        created_at=account.created_at,
        deleted_at=account.deleted_at,
    )


class AccountsController(Controller):
    path = "/v1/accounts"
    tags = ("Accounts",)

    @get(
        "/",
        operation_id="listAccounts",
        summary="My accounts",
        opt=USERS_ONLY,
        responses={
            200: ResponseSpec(
                AccountsResponse,
                description="A page",
                examples=[Example(value={"items": [ACCOUNT_EXAMPLE], "next_cursor": None})],
            ),
        },
    )
    async def index(
        self,
        request: Request[Caller, Any, Any],
        accounts: NamedDependency[Accounts],
        cursor: Cursor = None,
        limit: Limit = 50,
        *,
        deleted: Deleted = False,
    ) -> AccountsResponse:
        """The accounts that you are a member of, newest first, with your role in each.

        Choose one for other requests with the `Oslira-Account` header.
        """
        pages = accounts.deleted if deleted else accounts.page
        page = await pages(request.user, cursor=cursor, limit=limit)
        return AccountsResponse(
            items=[account_out(account) for account in page.items], next_cursor=page.next_cursor
        )

    @post(
        "/",
        operation_id="createAccount",
        summary="Create an account",
        response_headers=(LOCATION,),
        opt=USERS_ONLY,
        responses={201: SHOWN, **problem_responses(402)},
    )
    async def create(
        self,
        request: Request[Caller, Any, Any],
        data: AccountBody,
        accounts: NamedDependency[Accounts],
    ) -> Response[AccountResponse]:
        """Another account with you as its owner. It starts without credits."""
        account_id = AccountId(effect_id(request.scope))
        account = await accounts.create(request.user, account_id, data.name)
        return Response(
            account_out(account), status_code=201, headers={"Location": f"/v1/accounts/{account.id}"}
        )

    @get(
        "/{account_id:uuid}",
        operation_id="getAccount",
        summary="An account",
        opt=needs("account:read"),
        responses={200: SHOWN},
    )
    async def show(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        accounts: NamedDependency[Accounts],
    ) -> AccountResponse:
        """One account, with your role in it."""
        return account_out(await accounts.get(request.user, AccountId(account_id)))

    @patch(
        "/{account_id:uuid}",
        operation_id="renameAccount",
        summary="Rename an account",
        opt=needs("account:update"),
        responses={200: SHOWN},
    )
    async def rename(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        data: AccountBody,
        accounts: NamedDependency[Accounts],
    ) -> AccountResponse:
        """Give the account another name."""
        return account_out(await accounts.rename(request.user, AccountId(account_id), data.name))

    @delete(
        "/{account_id:uuid}",
        operation_id="deleteAccount",
        summary="Delete an account",
        opt=needs("account:delete"),
        responses={204: ResponseSpec(None, description="Deleted")},
    )
    async def remove(self, account_id: FromPath[UUID], accounts: NamedDependency[Accounts]) -> None:
        """Hide the account and everything in it, at once and for every member and key.

        An owner can restore it for 30 days; then it is gone.
        """
        await accounts.delete(AccountId(account_id))

    @post(
        "/{account_id:uuid}/restore",
        operation_id="restoreAccount",
        summary="Restore an account",
        status_code=200,
        opt=USERS_ONLY,
        responses={200: SHOWN},
    )
    async def restore(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        accounts: NamedDependency[Accounts],
    ) -> AccountResponse:
        """Bring back an account that you own and that was deleted less than 30 days ago."""
        return account_out(await accounts.restore(request.user, AccountId(account_id)))
