"""Who belongs to an account."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, delete, get, patch
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg, FromPath

from features.auth.application.members import Members
from features.auth.domain.roles import Role
from features.auth.domain.roster import Member
from shared.caller import Caller
from shared.ids import AccountId, UserId
from shared.middleware.access import needs
from shared.middleware.parameters import Cursor, Limit
from shared.middleware.problems import refusals


class RoleIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    role: Role


RoleBody = Annotated[RoleIn, BodyKwarg(examples=[Example(value={"role": "admin"})])]


class MemberOut(msgspec.Struct, frozen=True, kw_only=True):
    user_id: UUID
    email: str
    role: Role
    joined_at: datetime


class MembersOut(msgspec.Struct, frozen=True, kw_only=True):
    items: list[MemberOut]
    next_cursor: str | None


MEMBER_EXAMPLE = {
    "user_id": "0b6bd2b4-65d3-4f5c-a5b3-2f6f2a9d8c11",
    "email": "you@example.com",
    "role": "admin",
    "joined_at": "2026-11-01T09:30:00Z",
}


def _member_out(member: Member) -> MemberOut:
    return MemberOut(
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
                MembersOut,
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
    ) -> MembersOut:
        """Everybody who belongs to the account, in the order in which they joined."""
        page = await members.page(request.user, AccountId(account_id), cursor=cursor, limit=limit)
        return MembersOut(items=[_member_out(member) for member in page.items], next_cursor=page.next_cursor)

    @patch(
        "/{user_id:uuid}",
        operation_id="changeRole",
        summary="Change a role",
        opt=needs("members:manage"),
        responses={
            200: ResponseSpec(MemberOut, description="The member", examples=[Example(value=MEMBER_EXAMPLE)]),
            **refusals(409),
        },
    )
    async def change(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        user_id: FromPath[UUID],
        data: RoleBody,
        members: NamedDependency[Members],
    ) -> MemberOut:
        """Give a member another role. It holds from their next request on.

        Only owners make or unmake owners, and an account keeps at least one.
        """
        member = await members.change_role(request.user, AccountId(account_id), UserId(user_id), data.role)
        return _member_out(member)

    @delete(
        "/{user_id:uuid}",
        operation_id="removeMember",
        summary="Remove a member, or leave",
        opt=needs("members:read"),
        responses={204: ResponseSpec(None, description="Removed"), **refusals(409)},
    )
    async def remove(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        user_id: FromPath[UUID],
        members: NamedDependency[Members],
    ) -> None:
        """Take somebody out of the account, at once; with your own id, leave it.

        Everybody may leave, except the last owner. To remove others takes `members:manage`.
        """
        await members.remove(request.user, AccountId(account_id), UserId(user_id))
