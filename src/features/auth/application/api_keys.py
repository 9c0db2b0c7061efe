from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from features.auth.application import ports
from features.auth.application.ports import KeySettings
from features.auth.domain.api_keys import ApiKey, IssuedApiKey, Mode, check_expiry, issue
from features.auth.domain.errors import ApiKeyEnded, ApiKeyNotFound, TooManyApiKeys
from features.auth.domain.memberships import tidy_name
from shared.caller import Caller, no_account
from shared.clock import Clock
from shared.ids import AccountId
from shared.pagination import Cursor, Page, decode_cursor, page_of

VALID_MAX = 100


@dataclass(frozen=True, slots=True)
class NewKey:
    key: ApiKey
    text: str  # shown once


@dataclass(frozen=True, slots=True)
class ApiKeys:
    keys: ports.ApiKeys
    members: ports.Members
    now: Clock

    async def create(self, caller: Caller, key_id: UUID, mode: Mode, settings: KeySettings) -> NewKey:
        """Create a key. Idempotent by id: a retry returns a new secret and invalidates the first one.

        The first secret cannot have reached the client, because its response was lost.
        """
        check_expiry(settings.expires_at, self.now())
        issued = issue(key_id, mode)
        key = ApiKey(
            account_id=_account(caller),
            id=key_id,
            family_id=key_id,
            name=tidy_name(settings.name),
            mode=mode,
            scopes=sorted(set(settings.scopes)),
            project=settings.project,
            credits_per_month_max=settings.credits_per_month_max,
            expires_at=settings.expires_at,
            revoked_at=None,
            last_used_at=None,
            created_by=caller.user_id,
            created_at=self.now(),
        )
        return await self._add(caller, issued, key)

    async def rotate(self, caller: Caller, old_id: UUID, new_id: UUID, overlap: timedelta) -> NewKey:
        """Create a key with the same settings and expire the old one after the overlap.

        The overlap gives clients time to switch. Both keys count against one monthly cap.
        """
        old = await self.get(caller, old_id)
        now = self.now()
        if not old.is_valid(now):
            raise ApiKeyEnded
        issued = issue(new_id, old.mode)
        key = msgspec.structs.replace(
            old, id=new_id, last_used_at=None, created_by=caller.user_id, created_at=now
        )
        async with self.keys.transaction():
            new = await self._add(caller, issued, key)
            await self.keys.expire(old, now + overlap)
        return new

    async def _add(self, caller: Caller, issued: IssuedApiKey, key: ApiKey) -> NewKey:
        """Add the key. The role is checked under the account's lock, so a removed member cannot add a key."""
        async with self.keys.transaction():
            roster = await self.members.lock(key.account_id)
            roster.check(caller.user_id, "api_keys:manage")
            if await self.keys.lock_and_count_valid(key.account_id) >= VALID_MAX:
                raise TooManyApiKeys(limit=VALID_MAX)
            return NewKey(await self.keys.add(issued, key), issued.text)

    async def page(self, caller: Caller, *, cursor: str | None, limit: int) -> Page[ApiKey]:
        found = await self.keys.list(
            caller, _account(caller), before=decode_cursor(cursor), keys_max=limit + 1
        )
        return page_of(found, limit, lambda key: Cursor(key.created_at, key.id))

    async def get(self, caller: Caller, key_id: UUID) -> ApiKey:
        key = await self.keys.get(caller, _account(caller), key_id)
        if key is None:
            raise ApiKeyNotFound
        return key

    async def credits_spent(self, key: ApiKey) -> int:
        return await self.keys.credits_spent(key.account_id, key.id)

    async def change(self, caller: Caller, key_id: UUID, changes: dict[str, Any]) -> ApiKey:
        """Change the fields in ``changes``; other fields keep their values."""
        key = await self.get(caller, key_id)
        if not key.is_valid(self.now()):
            raise ApiKeyEnded
        settings = msgspec.structs.replace(_settings(key), **changes)
        if settings.expires_at != key.expires_at:
            check_expiry(settings.expires_at, self.now())
        return await self.keys.change(key, msgspec.structs.replace(settings, name=tidy_name(settings.name)))

    async def revoke(self, caller: Caller, key_id: UUID) -> None:
        """Revoke the key: the database rejects it at once, every process within five seconds. Idempotent."""
        if await self.keys.revoke(_account(caller), key_id) is None:
            raise ApiKeyNotFound


def _settings(key: ApiKey) -> KeySettings:
    return KeySettings(**{name: getattr(key, name) for name in KeySettings.__struct_fields__})


def _account(caller: Caller) -> AccountId:
    if caller.chosen_account is None:
        raise no_account(caller)
    return caller.chosen_account
