"""Routes for the caller and the caller's accounts."""

from typing import Annotated
from uuid import UUID

import msgspec
from litestar import Controller, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter

from features.auth.application.accounts import Accounts, CurrentUser
from features.auth.domain.memberships import NAME_LENGTH_MAX, NAME_PATTERN, Account
from shared.caller import PrincipalKind
from shared.http.parameters import AuthenticatedRequest, Cursor, Limit, RequestBody
from shared.http.responses import LOCATION, problems, struct_from
from shared.http.route_policy import SIGNED_IN, USERS_ONLY, needs
from shared.ids import AccountId
from shared.middleware.idempotency import effect_id
from shared.pagination import Page
from shared.permissions import Permission

Name = Annotated[
    str,
    msgspec.Meta(min_length=1, max_length=NAME_LENGTH_MAX, pattern=NAME_PATTERN, examples=["Corner bakery"]),
]
Deleted = Annotated[bool, QueryParameter(description="List the deleted accounts that you own.")]


class AccountRequest(RequestBody, frozen=True, kw_only=True):
    name: Name


class VerifiedResponse(msgspec.Struct, frozen=True, kw_only=True):
    kind: PrincipalKind
    id: UUID
    email: str | None
    is_operator: bool


class MeResponse(VerifiedResponse, frozen=True, kw_only=True):
    is_test: bool
    project: str | None
    account: Account | None
    permissions: list[Permission]


class IdentityController(Controller):
    path = "/v1"
    tags = ("Identity",)
    opt = SIGNED_IN

    @get("/auth/verify", sync_to_thread=False)
    def verify_token(self, request: AuthenticatedRequest) -> VerifiedResponse:
        """Verify an access token or API key and return its owner."""
        return struct_from(VerifiedResponse, request.user, email=request.user.email or None)

    @get("/me")
    async def get_me(
        self, request: AuthenticatedRequest, current_user: NamedDependency[CurrentUser]
    ) -> MeResponse:
        """Get the caller, the selected account and the caller's permissions in it.

        `account` is null if you have no account, or several and the request does not select one.
        """
        caller = request.user
        account, permissions = await current_user.account_and_permissions(caller)
        return struct_from(
            MeResponse, caller, email=caller.email or None, account=account, permissions=permissions
        )


class AccountsController(Controller):
    path = "/v1/accounts"
    tags = ("Accounts",)

    @get("/", opt=USERS_ONLY)
    async def list_accounts(
        self,
        request: AuthenticatedRequest,
        accounts: NamedDependency[Accounts],
        cursor: Cursor = None,
        limit: Limit = 50,
        *,
        deleted: Deleted = False,
    ) -> Page[Account]:
        """List the accounts that you are a member of, newest first, with your role in each.

        Other requests select one of them with the `Oslira-Account` header. With `deleted=true` the list
        contains the deleted accounts that you own and can still restore.
        """
        pages = accounts.deleted if deleted else accounts.page
        return await pages(request.user, cursor=cursor, limit=limit)

    @post("/", response_headers=(LOCATION,), opt=USERS_ONLY, responses=problems(402))
    async def create_account(
        self,
        request: AuthenticatedRequest,
        data: JSONBody[AccountRequest],
        accounts: NamedDependency[Accounts],
    ) -> Response[Account]:
        """Create an account that you own.

        It has no credits.
        """
        account = await accounts.create(request.user, AccountId(effect_id(request.scope)), data.name)
        return Response(account, headers={"Location": f"/v1/accounts/{account.id}"})

    @get("/{account_id:uuid}", opt=needs("account:read"))
    async def get_account(
        self, request: AuthenticatedRequest, account_id: FromPath[UUID], accounts: NamedDependency[Accounts]
    ) -> Account:
        """Get an account with your role in it."""
        return await accounts.get(request.user, AccountId(account_id))

    @patch("/{account_id:uuid}", opt=needs("account:update"))
    async def rename_account(
        self,
        request: AuthenticatedRequest,
        account_id: FromPath[UUID],
        data: JSONBody[AccountRequest],
        accounts: NamedDependency[Accounts],
    ) -> Account:
        """Rename an account."""
        return await accounts.rename(request.user, AccountId(account_id), data.name)

    @delete("/{account_id:uuid}", opt=needs("account:delete"))
    async def delete_account(self, account_id: FromPath[UUID], accounts: NamedDependency[Accounts]) -> None:
        """Delete an account.

        All members and API keys lose access immediately. An owner can restore the account for 30 days; then
        it is purged.
        """
        await accounts.delete(AccountId(account_id))

    @post("/{account_id:uuid}/restore", status_code=200, opt=USERS_ONLY)
    async def restore_account(
        self, request: AuthenticatedRequest, account_id: FromPath[UUID], accounts: NamedDependency[Accounts]
    ) -> Account:
        """Restore an account that you own, within 30 days of its deletion."""
        return await accounts.restore(request.user, AccountId(account_id))
