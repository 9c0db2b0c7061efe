from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from asyncpg import Record

from features.auth.application import ports
from features.auth.application.ports import KeySettings, StoredApiKey
from features.auth.domain.api_keys import ApiKey, IssuedApiKey
from infrastructure.database.clients import Database
from infrastructure.database.write_behind import WriteBehindQueue
from shared.caller import Caller
from shared.ids import AccountId, UserId
from shared.pagination import Cursor

FIND: LiteralString = """
select k.* from public.api_keys as k join public.accounts as a on a.id = k.account_id and a.deleted_at is null
where k.id = $1
"""
# Statements that change several keys lock them in the order of their ids, so that they cannot deadlock.
USED: LiteralString = """
with locked as (select id from public.api_keys where id = any ($1::uuid[]) order by id for no key update)
update public.api_keys as k set last_used_at = greatest(k.last_used_at, u.at)
from locked join unnest($1::uuid[], $2::timestamptz[]) as u (id, at) on u.id = locked.id
where k.id = locked.id
"""
# The lock on the account's row prevents concurrent requests from exceeding the limit.
LOCK: LiteralString = "select id from public.accounts where id = $1 for no key update"
COUNT_VALID: LiteralString = """
select count(*) as found from public.api_keys
where account_id = $1 and revoked_at is null and (expires_at is null or expires_at > now())
"""
ADD: LiteralString = """
insert into public.api_keys (
    account_id, id, family_id, name, mode, secret_hash, scopes, project, credits_per_month_max, expires_at,
    created_by, created_at
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
on conflict (account_id, id) do update set secret_hash = excluded.secret_hash
returning *
"""
LIST: LiteralString = """
select account_id, id, family_id, name, mode, scopes, project, credits_per_month_max, expires_at,
    revoked_at, last_used_at, created_by, created_at
from public.api_keys
where account_id = $1 and ($2::timestamptz is null or (created_at, id) < ($2, $3))
order by created_at desc, id desc
limit $4
"""
GET: LiteralString = """
select account_id, id, family_id, name, mode, scopes, project, credits_per_month_max, expires_at,
    revoked_at, last_used_at, created_by, created_at
from public.api_keys where account_id = $1 and id = $2
"""
SPENT: LiteralString = "select ledger.key_spending($1, $2) as credits_spent"
CHANGE: LiteralString = """
update public.api_keys
set name = $3, scopes = $4, project = $5, credits_per_month_max = $6, expires_at = $7
where account_id = $1 and id = $2
returning *
"""
EXPIRE: LiteralString = """
update public.api_keys set expires_at = least(expires_at, $3) where account_id = $1 and id = $2
returning *
"""
REVOKE: LiteralString = """
update public.api_keys set revoked_at = coalesce(revoked_at, now()) where account_id = $1 and id = $2
returning *
"""
VALID_OF: LiteralString = """
select * from public.api_keys
where account_id = $1 and created_by = $2
    and revoked_at is null and (expires_at is null or expires_at > now())
"""
REVOKE_OF: LiteralString = """
with locked as (
    select id from public.api_keys
    where account_id = $1 and created_by = $2
        and revoked_at is null and (expires_at is null or expires_at > now())
    order by id for no key update
)
update public.api_keys as k set revoked_at = now() from locked
where k.account_id = $1 and k.id = locked.id
returning k.*
"""


class PostgresApiKeyLookup(ports.ApiKeyLookup):
    def __init__(self, database: Database) -> None:
        self._session = database.admin("API key check")
        self._uses: WriteBehindQueue[tuple[UUID, datetime]] = WriteBehindQueue(
            "API key uses", self._write_uses
        )

    async def find(self, key_id: UUID) -> StoredApiKey | None:
        rows = await self._session.fetch(FIND, key_id)
        if not rows:
            return None
        return StoredApiKey(secret_hash=rows[0]["secret_hash"], key=_key(rows[0]))

    def record_use(self, key: ApiKey, at: datetime) -> None:
        self._uses.add((key.id, at))

    async def _write_uses(self, uses: list[tuple[UUID, datetime]]) -> None:
        latest = dict(sorted(uses, key=lambda use: use[1]))
        await self._session.fetch(USED, list(latest), list(latest.values()))

    async def close(self) -> None:
        await self._uses.close()


class PostgresApiKeys(ports.ApiKeys):
    def __init__(self, database: Database) -> None:
        self._database = database
        self._session = database.admin("API keys")

    def transaction(self) -> AbstractAsyncContextManager[None]:
        return self._session.transaction()

    async def lock_and_count_valid(self, account_id: AccountId) -> int:
        await self._session.fetch(LOCK, account_id)
        (row,) = await self._session.fetch(COUNT_VALID, account_id)
        return row["found"]

    async def add(self, issued: IssuedApiKey, key: ApiKey) -> ApiKey:
        (row,) = await self._session.fetch(
            ADD,
            key.account_id,
            key.id,
            key.family_id,
            key.name,
            key.mode,
            issued.secret_hash,
            key.scopes,
            key.project,
            key.credits_per_month_max,
            key.expires_at,
            key.created_by,
            key.created_at,
        )
        return _key(row)

    async def list(
        self, caller: Caller, account_id: AccountId, *, before: Cursor | None, keys_max: int
    ) -> list[ApiKey]:
        session = self._database.user(caller.claims)
        async with session.transaction():
            rows = await session.fetch(LIST, account_id, before and before.at, before and before.id, keys_max)
        return [_key(row) for row in rows]

    async def get(self, caller: Caller, account_id: AccountId, key_id: UUID) -> ApiKey | None:
        session = self._database.user(caller.claims)
        async with session.transaction():
            rows = await session.fetch(GET, account_id, key_id)
        return _key(rows[0]) if rows else None

    async def credits_spent(self, account_id: AccountId, key_id: UUID) -> int:
        (row,) = await self._session.fetch(SPENT, account_id, key_id)
        return row["credits_spent"]

    async def change(self, key: ApiKey, settings: KeySettings) -> ApiKey:
        (row,) = await self._session.fetch(
            CHANGE,
            key.account_id,
            key.id,
            settings.name,
            settings.scopes,
            settings.project,
            settings.credits_per_month_max,
            settings.expires_at,
        )
        return _key(row)

    async def expire(self, key: ApiKey, at: datetime) -> ApiKey:
        (row,) = await self._session.fetch(EXPIRE, key.account_id, key.id, at)
        return _key(row)

    async def revoke(self, account_id: AccountId, key_id: UUID) -> ApiKey | None:
        rows = await self._session.fetch(REVOKE, account_id, key_id)
        return _key(rows[0]) if rows else None

    async def valid_of(self, account_id: AccountId, creator: UserId) -> tuple[ApiKey, ...]:
        rows = await self._session.fetch(VALID_OF, account_id, creator)
        return tuple(_key(row) for row in rows)

    async def revoke_of(self, account_id: AccountId, creator: UserId) -> tuple[ApiKey, ...]:
        rows = await self._session.fetch(REVOKE_OF, account_id, creator)
        return tuple(_key(row) for row in rows)


def _key(row: Record) -> ApiKey:
    return ApiKey(**{name: row[name] for name in ApiKey.__struct_fields__})
