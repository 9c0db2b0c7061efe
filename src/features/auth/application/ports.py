from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import msgspec

from features.auth.domain.api_keys import ApiKey, IssuedApiKey
from features.auth.domain.invitations import Invitation
from features.auth.domain.memberships import Account, Member, Membership, MembershipList
from features.auth.domain.roles import Role, Scope
from shared.caller import Caller
from shared.ids import AccountId, UserId
from shared.pagination import Cursor


class TokenVerifier(Protocol):
    @property
    def generation(self) -> int:
        """Changes when a signing key is withdrawn: what was verified before has to be verified again."""
        ...

    async def verify(self, token: str) -> dict[str, Any]:
        """The claims of a token that is genuine, current and for us; Unauthenticated otherwise.
        Raises IdentityUnavailable while that cannot be told.
        """
        ...


class SignUps(Protocol):
    async def first_sight(
        self, user_id: UserId, *, email: str, account_name: str, bonus_credits: int
    ) -> None:
        """Give a new user an account and the bonus, once. Repeatable."""
        ...


class StoredApiKey(msgspec.Struct, frozen=True, kw_only=True):
    key: ApiKey
    secret_hash: bytes


class ApiKeyLookup(Protocol):
    """Keys as the door sees them, before it is known whose they are."""

    async def find(self, key_id: UUID) -> StoredApiKey | None:
        """None for a key of a deleted account as well."""
        ...

    def note_use(self, key: ApiKey, at: datetime) -> None:
        """Written down some time later."""
        ...


class Memberships(Protocol):
    async def of(self, caller: Caller) -> Membership | None:
        """In the account meant, now. None when it is not the caller's."""
        ...


class Accounts(Protocol):
    """What a caller may see, and what a user may own."""

    async def mine(self, caller: Caller, *, before: Cursor | None, accounts_max: int) -> list[Account]:
        """Newest first."""
        ...

    async def get(self, caller: Caller, account_id: AccountId) -> Account | None: ...

    async def deleted(self, user_id: UserId) -> list[Account]:
        """Those that the user owns and may restore."""
        ...

    async def create(self, account_id: AccountId, *, owner: UserId, name: str, accounts_max: int) -> bool:
        """False when the user owns as many already. Repeatable by id."""
        ...

    async def rename(self, account_id: AccountId, name: str) -> None: ...

    async def delete(self, account_id: AccountId) -> None: ...

    async def restore(self, account_id: AccountId, owner: UserId) -> bool:
        """False when there is nothing this owner could restore."""
        ...


class Members(Protocol):
    def transaction(self) -> AbstractAsyncContextManager[None]: ...

    async def lock(self, account_id: AccountId) -> MembershipList:
        """Nobody else changes the members until the transaction ends. Empty when there is no account."""
        ...

    async def list(
        self, caller: Caller, account_id: AccountId, *, after: Cursor | None, members_max: int
    ) -> list[Member]:
        """In the order in which they joined."""
        ...

    async def add(self, account_id: AccountId, user_id: UserId, role: Role) -> None:
        """Whoever is a member already keeps their role."""
        ...

    async def change_role(self, account_id: AccountId, user_id: UserId, role: Role) -> Member: ...

    async def remove(self, account_id: AccountId, user_id: UserId) -> None: ...

    async def has_email(self, account_id: AccountId, email: str) -> bool: ...


class Invitations(Protocol):
    async def open(
        self,
        invitation_id: UUID,
        account_id: AccountId,
        *,
        email: str,
        role: Role,
        token_hash: bytes,
        invited_by: UserId,
        expires_at: datetime,
    ) -> Invitation:
        """A second invitation of an address takes the place of the first, whose link ends."""
        ...

    async def count_open(self, account_id: AccountId) -> int: ...

    async def mark_sent(self, account_id: AccountId, invitation_id: UUID) -> Invitation: ...

    async def list(
        self, caller: Caller, account_id: AccountId, *, before: Cursor | None, invitations_max: int
    ) -> list[Invitation]:
        """Those that wait for an answer, newest first."""
        ...

    async def withdraw(self, account_id: AccountId, invitation_id: UUID) -> bool: ...

    async def withdraw_of(self, account_id: AccountId, inviter: UserId) -> tuple[Invitation, ...]:
        """Close the open invitations that a user sent, and return them."""
        ...

    async def lock_by_token(self, token_hash: bytes) -> Invitation | None:
        """An open one whose time is not over, or one that this very token has closed."""
        ...

    async def close(self, invitation: Invitation) -> None: ...


class InvitationMail(Protocol):
    async def send(self, email: str, *, link: str, account_name: str, inviter: str) -> None:
        """Have the identity service invite the address; existing users get a sign-in link.
        Raises InvitationNotSent.
        """
        ...


class KeySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a key's maker decides. ``credits_per_month_max``: None is no cap."""

    name: str
    scopes: list[Scope]
    project: str | None
    credits_per_month_max: int | None
    expires_at: datetime | None


class ApiKeys(Protocol):
    def transaction(self) -> AbstractAsyncContextManager[None]: ...

    async def lock_and_count_valid(self, account_id: AccountId) -> int: ...

    async def add(self, issued: IssuedApiKey, key: ApiKey) -> ApiKey:
        """With the same id again, the secret is replaced: the first one never reached anybody."""
        ...

    async def list(
        self, caller: Caller, account_id: AccountId, *, before: Cursor | None, keys_max: int
    ) -> list[ApiKey]:
        """Newest first, the ones that are over too."""
        ...

    async def get(self, caller: Caller, account_id: AccountId, key_id: UUID) -> ApiKey | None: ...

    async def credits_spent(self, account_id: AccountId, key_id: UUID) -> int:
        """In this month, by the key and those it replaced."""
        ...

    async def change(self, key: ApiKey, settings: KeySettings) -> ApiKey: ...

    async def expire(self, key: ApiKey, at: datetime) -> ApiKey:
        """No later than that; a key that ends sooner keeps its time."""
        ...

    async def revoke(self, account_id: AccountId, key_id: UUID) -> ApiKey | None:
        """From now on. Repeatable: the first time stays."""
        ...

    async def valid_of(self, account_id: AccountId, creator: UserId) -> tuple[ApiKey, ...]:
        """The keys that a user created and that are neither revoked nor expired."""
        ...

    async def revoke_of(self, account_id: AccountId, creator: UserId) -> tuple[ApiKey, ...]:
        """Revoke those keys, and return them."""
        ...
