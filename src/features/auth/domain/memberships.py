"""Members of an account and the rules for changing them."""

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
# No control characters, and a visible first character.
NAME_PATTERN = r"^[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
RESTORABLE_DAYS = 30


class Account(msgspec.Struct, frozen=True, kw_only=True):
    id: AccountId
    name: str
    plan: str
    role: Role | None  # the caller's role; None for a key
    created_at: datetime
    deleted_at: datetime | None = None


class Member(msgspec.Struct, frozen=True, kw_only=True):
    user_id: UserId
    email: str
    role: Role
    created_at: datetime = msgspec.field(name="joined_at")


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """A caller's role in an account and the account's plan."""

    account_id: AccountId
    role: Role | None  # None for a key, which has scopes instead
    plan: str


class MembershipList(msgspec.Struct, frozen=True):
    """The roles of all members, read under the account's lock, so that checks hold until the transaction
    ends.
    """

    roles: dict[UUID, Role]

    def check(self, actor: UserId, permission: Permission) -> Role:
        """Return the actor's role. Raises PermissionMissing, or AccountNotFound if the actor is no member."""
        role = self.roles.get(actor)
        if role is None:
            raise AccountNotFound
        if role not in ALLOWED[permission]:
            raise PermissionMissing(permission=permission, role=role)
        return role

    def check_may_give(self, actor: UserId, role: Role) -> None:
        """Raise OwnersOnly or PermissionMissing unless the actor may assign the role."""
        own_role = self.check(actor, "members:manage")
        if role == "owner" and own_role != "owner":
            raise OwnersOnly

    def check_change(self, actor: UserId, member: UserId, role: Role) -> None:
        self.check_may_give(actor, role)
        self._check_touch(actor, member)
        if role != "owner":
            self._check_not_last(member)

    def check_removal(self, actor: UserId, member: UserId) -> None:
        """Check a removal. Every member may leave, except the last owner; removing others needs
        members:manage.
        """
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
    """Collapse white space. Raises NameInvalid."""
    tidy = " ".join(name.split())
    if len(name) > NAME_LENGTH_MAX or not re.fullmatch(NAME_PATTERN, tidy):
        raise NameInvalid
    return tidy
