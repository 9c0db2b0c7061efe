"""The members of an account, and the rules for changing them."""

import re
from datetime import datetime
from uuid import UUID

import msgspec

from features.auth.domain.errors import (
    LastOwner,
    MemberNotFound,
    NameInvalid,
    OwnersOnly,
    PermissionMissing,
)
from features.auth.domain.roles import ALLOWED, Role
from shared.caller import AccountNotFound
from shared.ids import AccountId, UserId
from shared.permissions import Permission

NAME_LENGTH_MAX = 200
# No control characters, and something to see at its beginning.
NAME_PATTERN = r"^[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
RESTORABLE_DAYS = 30


class Account(msgspec.Struct, frozen=True, kw_only=True):
    id: AccountId
    name: str
    plan: str
    role: Role | None  # the caller's; None for a key
    created_at: datetime
    deleted_at: datetime | None = None


class Member(msgspec.Struct, frozen=True, kw_only=True):
    user_id: UserId
    email: str
    role: Role
    created_at: datetime


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """Where a caller stands in an account: with which role, on which plan."""

    account_id: AccountId
    role: Role | None  # None for a key, which has scopes instead
    plan: str


class MembershipList(msgspec.Struct, frozen=True):
    """Everybody's role, read under the account's lock: decisions made on it are true when they act."""

    roles: dict[UUID, Role]

    def check(self, actor: UserId, permission: Permission) -> Role:
        """The actor's role, which has to allow it. Strangers are told that there is no such account."""
        role = self.roles.get(actor)
        if role is None:
            raise AccountNotFound
        if role not in ALLOWED[permission]:
            raise PermissionMissing(permission, role)
        return role

    def check_may_give(self, actor: UserId, role: Role) -> None:
        """Whether the actor may make somebody that."""
        own_role = self.check(actor, "members:manage")
        if role == "owner" and own_role != "owner":
            raise OwnersOnly

    def check_change(self, actor: UserId, member: UserId, role: Role) -> None:
        self.check_may_give(actor, role)
        self._check_touch(actor, member)
        if role != "owner":
            self._check_not_last(member)

    def check_removal(self, actor: UserId, member: UserId) -> None:
        """Everybody may leave; to remove others takes a role."""
        self.check(actor, "members:read")
        if actor != member:
            self.check(actor, "members:manage")
            self._check_touch(actor, member)
        self._check_not_last(member)

    def _check_touch(self, actor: UserId, member: UserId) -> None:
        if member not in self.roles:
            raise MemberNotFound
        if self.roles[member] == "owner" and self.roles[actor] != "owner":
            raise OwnersOnly

    def _check_not_last(self, member: UserId) -> None:
        owners = [user for user, role in self.roles.items() if role == "owner"]
        if owners == [member]:
            raise LastOwner


def tidy_name(name: str) -> str:
    """Runs of blanks become one."""
    tidy = " ".join(name.split())
    if len(name) > NAME_LENGTH_MAX or not re.fullmatch(NAME_PATTERN, tidy):
        raise NameInvalid
    return tidy
