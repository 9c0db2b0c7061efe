"""HTTP handlers for the members of an account."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from litestar import Controller, Request, delete, get, patch
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg, FromPath, QueryParameter

from features.auth.application.members import Members
from features.auth.controllers.api_keys import KEY_EXAMPLE, ApiKeyResponse, api_key_out
from features.auth.controllers.invitations import INVITATION_EXAMPLE, InvitationResponse, invitation_out
from features.auth.domain.memberships import Member
from features.auth.domain.roles import Role
from shared.caller import Caller
from shared.http.pagination_parameters import Cursor, Limit
from shared.http.problems import problem_responses
from shared.http.route_policy import needs
from shared.ids import AccountId, UserId


class RoleRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    role: Role


KeysChoice = Annotated[
    Literal["revoke", "keep"],
    QueryParameter(name="api_keys", description="What happens to the valid keys that the member created."),
]
RoleBody = Annotated[RoleRequest, BodyKwarg(examples=[Example(value={"role": "admin"})])]


class MemberResponse(msgspec.Struct, frozen=True, kw_only=True):
    user_id: UUID
    email: str
    role: Role
    joined_at: datetime


class MembersResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[MemberResponse]
    next_cursor: str | None


class MemberRemovalResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`api_keys`: the valid keys that the member created; `revoked_at` is null if they were kept.
    `invitations`: the open invitations that the member sent, now closed.
    """

    api_keys: list[ApiKeyResponse]
    invitations: list[InvitationResponse]


MEMBER_EXAMPLE = {
    "user_id": "0b6bd2b4-65d3-4f5c-a5b3-2f6f2a9d8c11",
    "email": "you@example.com",
    "role": "admin",
    "joined_at": "2026-11-01T09:30:00Z",
}
REMOVAL_EXAMPLE = {
    "api_keys": [{**KEY_EXAMPLE, "revoked_at": "2026-11-02T10:00:00Z"}],
    "invitations": [INVITATION_EXAMPLE],
}


def _member_out(member: Member) -> MemberResponse:
    return MemberResponse(
        user_id=member.user_id, email=member.email, role=member.role, joined_at=member.created_at
    )


class MembersController(Controller):
    path = "/v1/accounts/{account_id:uuid}/members"
    tags = ("Members",)

    @get(
        "/",
        operation_id="listMembers",
        summary="Members",
        opt=needs("members:read"),
        responses={
            200: ResponseSpec(
                MembersResponse,
                description="A page",
                examples=[Example(value={"items": [MEMBER_EXAMPLE], "next_cursor": None})],
            ),
        },
    )
    async def index(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        members: NamedDependency[Members],
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> MembersResponse:
        """Everybody who belongs to the account, in the order in which they joined."""
        page = await members.page(request.user, AccountId(account_id), cursor=cursor, limit=limit)
        return MembersResponse(
            items=[_member_out(member) for member in page.items], next_cursor=page.next_cursor
        )

    @patch(
        "/{user_id:uuid}",
        operation_id="changeRole",
        summary="Change a role",
        opt=needs("members:manage"),
        responses={
            200: ResponseSpec(
                MemberResponse, description="The member", examples=[Example(value=MEMBER_EXAMPLE)]
            ),
            **problem_responses(409),
        },
    )
    async def change(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        user_id: FromPath[UUID],
        data: RoleBody,
        members: NamedDependency[Members],
    ) -> MemberResponse:
        """Give a member another role. It holds from their next request on.

        Only owners make or unmake owners, and an account keeps at least one.
        """
        member = await members.change_role(request.user, AccountId(account_id), UserId(user_id), data.role)
        return _member_out(member)

    @delete(
        "/{user_id:uuid}",
        operation_id="removeMember",
        summary="Remove a member, or leave",
        status_code=200,
        opt=needs("members:read"),
        responses={
            200: ResponseSpec(
                MemberRemovalResponse,
                description="Removed, with the affected keys and invitations",
                examples=[Example(value=REMOVAL_EXAMPLE)],
            ),
            **problem_responses(409),
        },
    )
    async def remove(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        user_id: FromPath[UUID],
        members: NamedDependency[Members],
        keys_choice: KeysChoice = "revoke",
    ) -> MemberRemovalResponse:
        """Remove a member from the account, at once; with your own id, leave it.

        Every member may leave, except the last owner. To remove others takes `members:manage`.

        The open invitations that the member sent are closed. The valid API keys that the member created are
        revoked (every process refuses them within five seconds), or stay valid with `api_keys=keep`. The
        response lists both.
        """
        removal = await members.remove(
            request.user, AccountId(account_id), UserId(user_id), keep_keys=keys_choice == "keep"
        )
        return MemberRemovalResponse(
            api_keys=[api_key_out(key) for key in removal.api_keys],
            invitations=[invitation_out(invitation) for invitation in removal.invitations],
        )
