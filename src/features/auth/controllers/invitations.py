"""HTTP handlers for invitations."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, delete, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg, FromPath

from features.auth.application.invitations import Invitations
from features.auth.controllers.accounts import SHOWN, AccountResponse, account_out
from features.auth.domain.invitations import EMAIL_LENGTH_MAX, EMAIL_PATTERN, Invitation
from features.auth.domain.roles import Role
from shared.caller import Caller
from shared.http.pagination_parameters import Cursor, Limit
from shared.http.problems import problem_responses
from shared.http.route_policy import USERS_ONLY, needs
from shared.ids import AccountId
from shared.middleware.idempotency import effect_id


class InvitationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    email: Annotated[
        str, msgspec.Meta(max_length=EMAIL_LENGTH_MAX, pattern=EMAIL_PATTERN, examples=["them@example.com"])
    ]
    role: Role = "member"


class AcceptanceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    token: Annotated[str, msgspec.Meta(min_length=1, max_length=200, description="From the link.")]


InvitationBody = Annotated[
    InvitationRequest, BodyKwarg(examples=[Example(value={"email": "them@example.com", "role": "member"})])
]
AcceptanceBody = Annotated[
    AcceptanceRequest,
    BodyKwarg(examples=[Example(value={"token": "osl_invite_ySh3mXq0b0E6cPq9o6f3pZ2uQ0c5rJ8w1lT4kN7vB2A"})]),
]


class InvitationResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    email: str
    role: Role
    invited_by: UUID
    created_at: datetime
    expires_at: datetime
    sent_at: datetime | None


class InvitationsResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[InvitationResponse]
    next_cursor: str | None


INVITATION_EXAMPLE = {
    "id": "5f0b7f5e-7a3a-4f0c-9a44-6b9f3b7d2c01",
    "email": "them@example.com",
    "role": "member",
    "invited_by": "0b6bd2b4-65d3-4f5c-a5b3-2f6f2a9d8c11",
    "created_at": "2026-11-01T09:30:00Z",
    "expires_at": "2026-11-08T09:30:00Z",
    "sent_at": "2026-11-01T09:30:01Z",
}


def invitation_out(invitation: Invitation) -> InvitationResponse:
    return InvitationResponse(
        id=invitation.id,
        email=invitation.email,
        role=invitation.role,
        invited_by=invitation.invited_by,
        created_at=invitation.created_at,
        expires_at=invitation.expires_at,
        sent_at=invitation.sent_at,
    )


class InvitationsController(Controller):
    path = "/v1"
    tags = ("Members",)

    @post(
        "/accounts/{account_id:uuid}/invitations",
        operation_id="inviteMember",
        summary="Invite",
        opt=needs("members:manage"),
        responses={
            201: ResponseSpec(
                InvitationResponse, description="Sent", examples=[Example(value=INVITATION_EXAMPLE)]
            ),
            **problem_responses(402),
        },
    )
    async def invite(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        data: InvitationBody,
        invitations: NamedDependency[Invitations],
    ) -> InvitationResponse:
        """Send a link to an e-mail address; whoever signs in with that address and accepts is a member.

        The link is good for seven days. To invite an address again sends a new link and ends the old one.
        """
        invitation = await invitations.invite(
            request.user,
            AccountId(account_id),
            effect_id(request.scope),
            email=data.email,
            role=data.role,
        )
        return invitation_out(invitation)

    @get(
        "/accounts/{account_id:uuid}/invitations",
        operation_id="listInvitations",
        summary="Open invitations",
        opt=needs("members:manage"),
        responses={
            200: ResponseSpec(
                InvitationsResponse,
                description="A page",
                examples=[Example(value={"items": [INVITATION_EXAMPLE], "next_cursor": None})],
            ),
        },
    )
    async def index(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        invitations: NamedDependency[Invitations],
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> InvitationsResponse:
        """Invitations that wait for an answer, newest first."""
        page = await invitations.page(request.user, AccountId(account_id), cursor=cursor, limit=limit)
        return InvitationsResponse(
            items=[invitation_out(invitation) for invitation in page.items], next_cursor=page.next_cursor
        )

    @delete(
        "/accounts/{account_id:uuid}/invitations/{invitation_id:uuid}",
        operation_id="withdrawInvitation",
        summary="Withdraw an invitation",
        opt=needs("members:manage"),
        responses={204: ResponseSpec(None, description="Withdrawn")},
    )
    async def withdraw(
        self,
        account_id: FromPath[UUID],
        invitation_id: FromPath[UUID],
        invitations: NamedDependency[Invitations],
    ) -> None:
        """End an invitation: its link does not work any more."""
        await invitations.withdraw(AccountId(account_id), invitation_id)

    @post(
        "/invitations/accept",
        operation_id="acceptInvitation",
        summary="Accept an invitation",
        status_code=200,
        opt=USERS_ONLY,
        responses={200: SHOWN},
    )
    async def accept(
        self,
        request: Request[Caller, Any, Any],
        data: AcceptanceBody,
        invitations: NamedDependency[Invitations],
    ) -> AccountResponse:
        """Become a member, with the token of the link that reached your e-mail address."""
        return account_out(await invitations.accept(request.user, data.token))
