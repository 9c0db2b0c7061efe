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
        """Counter that changes when a signing key is withdrawn: earlier verifications are then void."""
        ...

    async def verify(self, token: str) -> dict[str, Any]:
        """Return the claims of a token that is genuine, current and issued for us.

        Raises Unauthenticated otherwise, and IdentityUnavailable while the token cannot be verified.
        """
        ...


class SignUps(Protocol):
    async def sign_up_if_new(
        self, user_id: UserId, *, email: str, account_name: str, bonus_credits: int
    ) -> None:
        """Create the account and the bonus of a new user, once. Idempotent."""
        ...


class StoredApiKey(msgspec.Struct, frozen=True, kw_only=True):
    key: ApiKey
    secret_hash: bytes


class ApiKeyLookup(Protocol):
    """Lookup of keys for authentication, before the caller is known."""

    async def find(self, key_id: UUID) -> StoredApiKey | None:
        """Find a key. Returns None for a key of a deleted account as well."""
        ...

    def record_use(self, key: ApiKey, at: datetime) -> None:
        """Record the time of use with a write-behind."""
        ...


class Memberships(Protocol):
    async def find(self, caller: Caller) -> Membership | None:
        """Return the caller's membership of the chosen account; None when it is not the caller's account."""
        ...


class Accounts(Protocol):
    """Accounts that a caller can see or owns."""

    async def mine(self, caller: Caller, *, before: Cursor | None, accounts_max: int) -> list[Account]:
        """Return the caller's accounts, newest first."""
        ...

    async def get(self, caller: Caller, account_id: AccountId) -> Account | None: ...

    async def deleted(self, user_id: UserId) -> list[Account]:
        """Return the deleted accounts that the user owns and can restore."""
        ...

    async def create(self, account_id: AccountId, *, owner: UserId, name: str, accounts_max: int) -> bool:
        """Create an account. Returns False when the user owns ``accounts_max`` already. Idempotent by id."""
        ...

    async def rename(self, account_id: AccountId, name: str) -> None: ...

    async def delete(self, account_id: AccountId) -> None: ...

    async def restore(self, account_id: AccountId, owner: UserId) -> bool:
        """Restore an account. Returns False when the owner has no such deleted account."""
        ...


class Members(Protocol):
    def transaction(self) -> AbstractAsyncContextManager[None]: ...

    async def lock(self, account_id: AccountId) -> MembershipList:
        """Lock the members until the transaction ends and return their roles; empty without an account."""
        ...

    async def list(
        self, caller: Caller, account_id: AccountId, *, after: Cursor | None, members_max: int
    ) -> list[Member]:
        """Return the members in the order in which they joined."""
        ...

    async def add(self, account_id: AccountId, user_id: UserId, role: Role) -> None:
        """Add a member. An existing member keeps the role."""
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
        """Open an invitation. It replaces an earlier invitation of the address, whose link ends."""
        ...

    async def count_open(self, account_id: AccountId) -> int: ...

    async def mark_sent(self, account_id: AccountId, invitation_id: UUID) -> Invitation: ...

    async def list(
        self, caller: Caller, account_id: AccountId, *, before: Cursor | None, invitations_max: int
    ) -> list[Invitation]:
        """Return the open invitations, newest first."""
        ...

    async def withdraw(self, account_id: AccountId, invitation_id: UUID) -> bool: ...

    async def withdraw_of(self, account_id: AccountId, inviter: UserId) -> tuple[Invitation, ...]:
        """Close the open invitations that a user sent and return them."""
        ...

    async def lock_by_token(self, token_hash: bytes) -> Invitation | None:
        """Return and lock an open, unexpired invitation, or one that was accepted with this token."""
        ...

    async def close(self, invitation: Invitation) -> None: ...


class InvitationMail(Protocol):
    async def send(self, email: str, *, link: str, account_name: str, inviter: str) -> None:
        """Send an invitation through the identity service; existing users get a sign-in link.

        Raises InvitationNotSent.
        """
        ...


class KeySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a key that its creator chooses. ``credits_per_month_max``: None means no cap."""

    name: str
    scopes: list[Scope]
    project: str | None
    credits_per_month_max: int | None
    expires_at: datetime | None


class ApiKeys(Protocol):
    def transaction(self) -> AbstractAsyncContextManager[None]: ...

    async def lock_and_count_valid(self, account_id: AccountId) -> int: ...

    async def add(self, issued: IssuedApiKey, key: ApiKey) -> ApiKey:
        """Add a key. The same id again replaces the secret, because the first one was never delivered."""
        ...

    async def list(
        self, caller: Caller, account_id: AccountId, *, before: Cursor | None, keys_max: int
    ) -> list[ApiKey]:
        """Return the keys, newest first, including revoked and expired ones."""
        ...

    async def get(self, caller: Caller, account_id: AccountId, key_id: UUID) -> ApiKey | None: ...

    async def credits_spent(self, account_id: AccountId, key_id: UUID) -> int:
        """Return the credits spent this month by the key and the keys it replaced."""
        ...

    async def change(self, key: ApiKey, settings: KeySettings) -> ApiKey: ...

    async def expire(self, key: ApiKey, at: datetime) -> ApiKey:
        """Expire the key at that time; a key that expires sooner keeps its expiry."""
        ...

    async def revoke(self, account_id: AccountId, key_id: UUID) -> ApiKey | None:
        """Revoke the key now. Idempotent: the first revocation time stays."""
        ...

    async def valid_of(self, account_id: AccountId, creator: UserId) -> tuple[ApiKey, ...]:
        """Return the keys that a user created and that are neither revoked nor expired."""
        ...

    async def revoke_of(self, account_id: AccountId, creator: UserId) -> tuple[ApiKey, ...]:
        """Revoke the valid keys that a user created and return them."""
        ...
