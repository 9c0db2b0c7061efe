from datetime import datetime
from typing import LiteralString
from uuid import UUID

from asyncpg import Record

from features.auth.application import ports
from features.auth.domain.invitations import Invitation
from features.auth.domain.roles import Role
from infrastructure.database.clients import Database
from shared.caller import Caller
from shared.ids import AccountId, UserId
from shared.pagination import Cursor

OPEN: LiteralString = """
insert into public.invitations (account_id, id, email, role, token_hash, invited_by, expires_at)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (account_id, email) where closed_at is null do update
set role = excluded.role, token_hash = excluded.token_hash, invited_by = excluded.invited_by,
    expires_at = excluded.expires_at, sent_at = null
returning *
"""
COUNT_OPEN: LiteralString = """
select count(*) as found from public.invitations where account_id = $1 and closed_at is null
"""
MARK_SENT: LiteralString = """
update public.invitations set sent_at = now() where account_id = $1 and id = $2
returning *
"""
LIST: LiteralString = """
select account_id, id, email, role, invited_by, created_at, expires_at, sent_at, closed_at
from public.invitations
where account_id = $1 and closed_at is null
    and ($2::timestamptz is null or (created_at, id) < ($2, $3))
order by created_at desc, id desc
limit $4
"""
# A random hash invalidates the link.
WITHDRAW: LiteralString = """
update public.invitations set closed_at = now(), token_hash = sha256(gen_random_uuid()::text::bytea)
where account_id = $1 and id = $2 and closed_at is null
returning id
"""
WITHDRAW_OF: LiteralString = """
update public.invitations set closed_at = now(), token_hash = sha256(gen_random_uuid()::text::bytea)
where account_id = $1 and invited_by = $2 and closed_at is null
returning *
"""
LOCK_BY_HASH: LiteralString = """
select i.* from public.invitations as i
join public.accounts as a on a.id = i.account_id and a.deleted_at is null
where i.token_hash = $1 and (i.closed_at is not null or i.expires_at > now())
for update of i
"""
CLOSE: LiteralString = "update public.invitations set closed_at = now() where account_id = $1 and id = $2"


class PostgresInvitations(ports.Invitations):
    def __init__(self, database: Database) -> None:
        self._database = database
        self._session = database.admin("invitations")

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
        (row,) = await self._session.fetch(
            OPEN, account_id, invitation_id, email, role, token_hash, invited_by, expires_at
        )
        return _invitation(row)

    async def count_open(self, account_id: AccountId) -> int:
        (row,) = await self._session.fetch(COUNT_OPEN, account_id)
        return row["found"]

    async def mark_sent(self, account_id: AccountId, invitation_id: UUID) -> Invitation:
        (row,) = await self._session.fetch(MARK_SENT, account_id, invitation_id)
        return _invitation(row)

    async def list(
        self, caller: Caller, account_id: AccountId, *, before: Cursor | None, invitations_max: int
    ) -> list[Invitation]:
        session = self._database.user(caller.claims)
        async with session.transaction():
            rows = await session.fetch(
                LIST, account_id, before and before.at, before and before.id, invitations_max
            )
        return [_invitation(row) for row in rows]

    async def withdraw(self, account_id: AccountId, invitation_id: UUID) -> bool:
        return bool(await self._session.fetch(WITHDRAW, account_id, invitation_id))

    async def withdraw_of(self, account_id: AccountId, inviter: UserId) -> tuple[Invitation, ...]:
        rows = await self._session.fetch(WITHDRAW_OF, account_id, inviter)
        return tuple(_invitation(row) for row in rows)

    async def lock_by_token(self, token_hash: bytes) -> Invitation | None:
        rows = await self._session.fetch(LOCK_BY_HASH, token_hash)
        return _invitation(rows[0]) if rows else None

    async def close(self, invitation: Invitation) -> None:
        await self._session.fetch(CLOSE, invitation.account_id, invitation.id)


def _invitation(row: Record) -> Invitation:
    return Invitation(**{name: row[name] for name in Invitation.__struct_fields__})
