from contextlib import AbstractAsyncContextManager
from typing import LiteralString

from asyncpg import Record

from features.auth.application import ports
from features.auth.domain.memberships import Account, Member, Membership, MembershipList
from features.auth.domain.roles import Role
from infrastructure.database.clients import Database
from shared.caller import Caller
from shared.ids import AccountId, UserId
from shared.pagination import Cursor

SIGN_UP: LiteralString = "select private.sign_up_if_new($1, $2, $3, $4)"
MEMBERSHIP: LiteralString = "select * from caller.membership($1, $2)"

MINE: LiteralString = """
select a.id, a.name, a.plan, m.role, a.created_at, a.deleted_at
from public.accounts as a
left join public.memberships as m on m.account_id = a.id and m.user_id = (select private.user_id())
where ($1::timestamptz is null or (a.created_at, a.id) < ($1, $2))
order by a.created_at desc, a.id desc
limit $3
"""
GET: LiteralString = """
select a.id, a.name, a.plan, m.role, a.created_at, a.deleted_at
from public.accounts as a
left join public.memberships as m on m.account_id = a.id and m.user_id = (select private.user_id())
where a.id = $1
"""
DELETED: LiteralString = """
select a.id, a.name, a.plan, m.role, a.created_at, a.deleted_at
from public.accounts as a
join public.memberships as m on m.account_id = a.id
where m.user_id = $1 and m.role = 'owner' and a.deleted_at > now() - interval '30 days'
order by a.deleted_at desc, a.id desc
"""
CREATE: LiteralString = "select private.create_account($1, $2, $3, $4) as outcome"
RENAME: LiteralString = """
update public.accounts set name = $2, updated_at = now() where id = $1 and deleted_at is null
"""
DELETE: LiteralString = """
update public.accounts set deleted_at = now(), updated_at = now() where id = $1 and deleted_at is null
"""
RESTORE: LiteralString = """
update public.accounts as a set deleted_at = null, updated_at = now()
from public.memberships as m
where a.id = $1 and a.deleted_at > now() - interval '30 days'
    and m.account_id = a.id and m.user_id = $2 and m.role = 'owner'
returning a.id
"""

LOCK: LiteralString = """
select id from public.accounts where id = $1 and deleted_at is null for no key update
"""
ROLES: LiteralString = "select user_id, role from public.memberships where account_id = $1"
MEMBERS: LiteralString = """
select m.user_id, s.email, m.role, m.created_at
from public.memberships as m
left join public.sign_ups as s on s.user_id = m.user_id
where m.account_id = $1 and ($2::timestamptz is null or (m.created_at, m.user_id) > ($2, $3))
order by m.created_at, m.user_id
limit $4
"""
ADD: LiteralString = """
insert into public.memberships (account_id, user_id, role) values ($1, $2, $3) on conflict do nothing
"""
CHANGE_ROLE: LiteralString = """
update public.memberships as m set role = $3
from public.sign_ups as s
where m.account_id = $1 and m.user_id = $2 and s.user_id = m.user_id
returning m.user_id, s.email, m.role, m.created_at
"""
REMOVE: LiteralString = "delete from public.memberships where account_id = $1 and user_id = $2"
HAS_EMAIL: LiteralString = """
select exists (
    select from public.memberships as m join public.sign_ups as s on s.user_id = m.user_id
    where m.account_id = $1 and s.email = $2
) as found
"""


class PostgresSignUps(ports.SignUps):
    def __init__(self, database: Database) -> None:
        self._session = database.admin("sign-up")

    async def sign_up_if_new(
        self, user_id: UserId, *, email: str, account_name: str, bonus_credits: int
    ) -> None:
        await self._session.fetch(SIGN_UP, user_id, email, account_name, bonus_credits)


class PostgresMemberships(ports.Memberships):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, caller: Caller) -> Membership | None:
        (row,) = await self._database.user(caller.claims).call(MEMBERSHIP, caller.chosen_account)
        return Membership(**row) if row["account_id"] else None


class PostgresAccounts(ports.Accounts):
    """Accounts read under row level security.

    The admin client makes the changes that Authorization has allowed, and reads a user's deleted accounts,
    because row level security hides them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._session = database.admin("accounts")

    async def mine(self, caller: Caller, *, before: Cursor | None, accounts_max: int) -> list[Account]:
        session = self._database.user(caller.claims)
        async with session.transaction():
            rows = await session.fetch(MINE, before and before.at, before and before.id, accounts_max)
        return [_account(row) for row in rows]

    async def get(self, caller: Caller, account_id: AccountId) -> Account | None:
        session = self._database.user(caller.claims)
        async with session.transaction():
            rows = await session.fetch(GET, account_id)
        return _account(rows[0]) if rows else None

    async def deleted(self, user_id: UserId) -> list[Account]:
        return [_account(row) for row in await self._session.fetch(DELETED, user_id)]

    async def create(self, account_id: AccountId, *, owner: UserId, name: str, accounts_max: int) -> bool:
        (row,) = await self._session.fetch(CREATE, account_id, owner, name, accounts_max)
        return row["outcome"] != "too_many"

    async def rename(self, account_id: AccountId, name: str) -> None:
        await self._session.fetch(RENAME, account_id, name)

    async def delete(self, account_id: AccountId) -> None:
        await self._session.fetch(DELETE, account_id)

    async def restore(self, account_id: AccountId, owner: UserId) -> bool:
        return bool(await self._session.fetch(RESTORE, account_id, owner))


def _account(row: Record) -> Account:
    return Account(**row)


class PostgresMembers(ports.Members):
    def __init__(self, database: Database) -> None:
        self._database = database
        self._session = database.admin("members")

    def transaction(self) -> AbstractAsyncContextManager[None]:
        return self._session.transaction()

    async def lock(self, account_id: AccountId) -> MembershipList:
        if not await self._session.fetch(LOCK, account_id):
            return MembershipList({})
        rows = await self._session.fetch(ROLES, account_id)
        return MembershipList({row["user_id"]: row["role"] for row in rows})

    async def list(
        self, caller: Caller, account_id: AccountId, *, after: Cursor | None, members_max: int
    ) -> list[Member]:
        session = self._database.user(caller.claims)
        async with session.transaction():
            rows = await session.fetch(
                MEMBERS, account_id, after and after.at, after and after.id, members_max
            )
        return [Member(**row) for row in rows]

    async def add(self, account_id: AccountId, user_id: UserId, role: Role) -> None:
        await self._session.fetch(ADD, account_id, user_id, role)

    async def change_role(self, account_id: AccountId, user_id: UserId, role: Role) -> Member:
        (row,) = await self._session.fetch(CHANGE_ROLE, account_id, user_id, role)
        return Member(**row)

    async def remove(self, account_id: AccountId, user_id: UserId) -> None:
        await self._session.fetch(REMOVE, account_id, user_id)

    async def has_email(self, account_id: AccountId, email: str) -> bool:
        (row,) = await self._session.fetch(HAS_EMAIL, account_id, email)
        return row["found"]
