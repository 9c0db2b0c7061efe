"""Routes for the members of an account and for invitations."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from litestar import Controller, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody, QueryParameter

from features.auth.application.invitations import Invitations
from features.auth.application.members import Members
from features.auth.controllers.api_keys import ApiKeyResponse, api_key_response
from features.auth.domain.invitations import EMAIL_LENGTH_MAX, EMAIL_PATTERN, Invitation
from features.auth.domain.memberships import Account, Member
from features.auth.domain.roles import Role
from shared.http.parameters import AuthenticatedRequest, Cursor, Limit, RequestBody
from shared.http.responses import problems, struct_from
from shared.http.route_policy import USERS_ONLY, needs
from shared.ids import AccountId, UserId
from shared.middleware.idempotency import effect_id
from shared.pagination import Page

MANAGE = needs("members:manage")

KeysChoice = Annotated[
    Literal["revoke", "keep"],
    QueryParameter(name="api_keys", description="What happens to the valid keys that the member created."),
]
Email = Annotated[
    str, msgspec.Meta(max_length=EMAIL_LENGTH_MAX, pattern=EMAIL_PATTERN, examples=["member@example.com"])
]


class RoleRequest(RequestBody, frozen=True, kw_only=True):
    role: Role


class InvitationRequest(RequestBody, frozen=True, kw_only=True):
    email: Email
    role: Role = "member"


class AcceptanceRequest(RequestBody, frozen=True, kw_only=True):
    token: Annotated[str, msgspec.Meta(min_length=1, max_length=200, description="From the link.")]


class InvitationResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    email: str
    role: Role
    invited_by: UUID
    created_at: datetime
    expires_at: datetime
    sent_at: datetime | None


class MemberRemovalResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`api_keys`: the valid keys that the member created; `revoked_at` is null if they were kept.
    `invitations`: the open invitations that the member sent, now closed.
    """

    api_keys: list[ApiKeyResponse]
    invitations: list[InvitationResponse]


def _invitation_response(invitation: Invitation) -> InvitationResponse:
    return struct_from(InvitationResponse, invitation)


class MembersController(Controller):
    path = "/v1/accounts/{account_id:uuid}/members"
    tags = ("Members",)

    @get("/", opt=needs("members:read"))
    async def list_members(
        self,
        request: AuthenticatedRequest,
        account_id: FromPath[UUID],
        members: NamedDependency[Members],
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[Member]:
        """List the members of an account in the order in which they joined."""
        return await members.page(request.user, AccountId(account_id), cursor=cursor, limit=limit)

    @patch("/{user_id:uuid}", opt=MANAGE, responses=problems(409))
    async def change_role(
        self,
        request: AuthenticatedRequest,
        account_id: FromPath[UUID],
        user_id: FromPath[UUID],
        data: JSONBody[RoleRequest],
        members: NamedDependency[Members],
    ) -> Member:
        """Change the role of a member.

        The new role applies from the member's next request. Only an owner can add or remove the role of an
        owner, and an account keeps at least one owner.
        """
        return await members.change_role(request.user, AccountId(account_id), UserId(user_id), data.role)

    @delete("/{user_id:uuid}", status_code=200, opt=needs("members:read"), responses=problems(409))
    async def remove_member(
        self,
        request: AuthenticatedRequest,
        account_id: FromPath[UUID],
        user_id: FromPath[UUID],
        members: NamedDependency[Members],
        keys_choice: KeysChoice = "revoke",
    ) -> MemberRemovalResponse:
        """Remove a member from an account, or leave it with your own id.

        Every member can leave, except the last owner. Removing another member requires `members:manage`.

        The open invitations that the member sent are closed. The valid API keys that the member created are
        revoked (every process rejects them within five seconds), or stay valid with `api_keys=keep`. The
        response lists both.
        """
        removal = await members.remove(
            request.user, AccountId(account_id), UserId(user_id), keep_keys=keys_choice == "keep"
        )
        return MemberRemovalResponse(
            api_keys=[api_key_response(key) for key in removal.api_keys],
            invitations=[_invitation_response(invitation) for invitation in removal.invitations],
        )


class InvitationsController(Controller):
    path = "/v1"
    tags = ("Members",)

    @post("/accounts/{account_id:uuid}/invitations", opt=MANAGE, responses=problems(402))
    async def invite_member(
        self,
        request: AuthenticatedRequest,
        account_id: FromPath[UUID],
        data: JSONBody[InvitationRequest],
        invitations: NamedDependency[Invitations],
    ) -> InvitationResponse:
        """Invite a person to an account by e-mail.

        The e-mail contains a link that is valid for seven days. A user who signs in with that address and
        accepts becomes a member. A second invitation of the same address replaces the first one.
        """
        invitation_id = effect_id(request.scope)
        invitation = await invitations.invite(
            request.user, AccountId(account_id), invitation_id, email=data.email, role=data.role
        )
        return _invitation_response(invitation)

    @get("/accounts/{account_id:uuid}/invitations", opt=MANAGE)
    async def list_invitations(
        self,
        request: AuthenticatedRequest,
        account_id: FromPath[UUID],
        invitations: NamedDependency[Invitations],
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[InvitationResponse]:
        """List the open invitations of an account, newest first."""
        page = await invitations.page(request.user, AccountId(account_id), cursor=cursor, limit=limit)
        return page.map(_invitation_response)

    @delete("/accounts/{account_id:uuid}/invitations/{invitation_id:uuid}", opt=MANAGE)
    async def withdraw_invitation(
        self,
        account_id: FromPath[UUID],
        invitation_id: FromPath[UUID],
        invitations: NamedDependency[Invitations],
    ) -> None:
        """Withdraw an invitation, so that its link is no longer valid."""
        await invitations.withdraw(AccountId(account_id), invitation_id)

    @post("/invitations/accept", status_code=200, opt=USERS_ONLY)
    async def accept_invitation(
        self,
        request: AuthenticatedRequest,
        data: JSONBody[AcceptanceRequest],
        invitations: NamedDependency[Invitations],
    ) -> Account:
        """Accept an invitation with the token from its link, and become a member."""
        return await invitations.accept(request.user, data.token)
