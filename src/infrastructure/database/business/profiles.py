from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import LiteralString

from asyncpg import Record

from features.business.application.ports import AccountProfiles, ProfileStore
from features.business.domain.ideal_customer import LISTS, IdealCustomer
from features.business.domain.profile import (
    RESTORABLE_FOR,
    Allowance,
    BusinessProfile,
    ProfileContent,
    ProfileId,
)
from infrastructure.database.clients import AccountClient, Database
from shared.caller import Caller
from shared.pagination import LATEST, Cursor

GET: LiteralString = """
select * from public.business_profiles where account_id = $1 and id = $2 and deleted_at is null
"""
# $2: null, or the time within which the listed profiles were deleted.
LIST: LiteralString = """
select * from public.business_profiles
where account_id = $1 and (created_at, id) < ($3, $4)
    and case when $2::interval is null then deleted_at is null else deleted_at > clock_timestamp() - $2 end
order by created_at desc, id desc
limit $5
"""
# An advisory lock, because a member may not lock the account's row. The count is a separate statement, so
# that it sees the rows that other transactions committed while this one waited for the lock.
LOCK: LiteralString = "select pg_advisory_xact_lock(hashtextextended('business_profiles:' || $1::uuid, 0))"
ALLOWANCE: LiteralString = """
select a.plan, p.business_profiles_max as profiles_max, (
    select count(*) from public.business_profiles as b where b.account_id = a.id and b.deleted_at is null
) as profiles_count
from public.accounts as a join public.plans as p on p.name = a.plan
where a.id = $1
"""
FIND: LiteralString = """
select * from public.business_profiles where account_id = $1 and id = $2 for no key update
"""
INSERT: LiteralString = """
insert into public.business_profiles (
    account_id, id, created_by, name, website, industry, summary, offering, target_audience,
    value_proposition, tone, outreach_goal, language, followers_min, followers_max,
    engagement_rate_min_hundredths, niches, content_themes, geographies, exclusions
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
returning *
"""
REWRITE: LiteralString = """
update public.business_profiles set
    name = $4, website = $5, industry = $6, summary = $7, offering = $8, target_audience = $9,
    value_proposition = $10, tone = $11, outreach_goal = $12, language = $13, followers_min = $14,
    followers_max = $15, engagement_rate_min_hundredths = $16, niches = $17, content_themes = $18,
    geographies = $19, exclusions = $20, version = version + 1, updated_at = statement_timestamp()
where account_id = $1 and id = $2 and version = $3
returning *
"""
DELETE: LiteralString = """
update public.business_profiles
set deleted_at = statement_timestamp(), version = version + 1, updated_at = statement_timestamp()
where account_id = $1 and id = $2 and version = $3
"""
RESTORE: LiteralString = """
update public.business_profiles
set deleted_at = null, version = version + 1, updated_at = statement_timestamp()
where account_id = $1 and id = $2 and version = $3 and deleted_at > statement_timestamp() - $4::interval
returning *
"""


class PostgresAccountProfiles(AccountProfiles):
    def __init__(self, account: AccountClient) -> None:
        self._account = account

    async def allowance(self) -> Allowance:
        await self._account.fetch(LOCK)
        (row,) = await self._account.fetch(ALLOWANCE)
        return Allowance(**row)

    async def find(self, profile_id: ProfileId) -> BusinessProfile | None:
        rows = await self._account.fetch(FIND, profile_id)
        return profile_of(rows[0]) if rows else None

    async def insert(
        self, profile_id: ProfileId, content: ProfileContent, *, created_by: str
    ) -> BusinessProfile:
        (row,) = await self._account.fetch(INSERT, profile_id, created_by, *_values(content))
        return profile_of(row)

    async def rewrite(self, profile: BusinessProfile, content: ProfileContent) -> BusinessProfile:
        (row,) = await self._account.fetch(REWRITE, profile.id, profile.version, *_values(content))
        return profile_of(row)

    async def delete(self, profile: BusinessProfile) -> None:
        await self._account.fetch(DELETE, profile.id, profile.version)

    async def restore(self, profile: BusinessProfile) -> BusinessProfile | None:
        rows = await self._account.fetch(RESTORE, profile.id, profile.version, RESTORABLE_FOR)
        return profile_of(rows[0]) if rows else None


class PostgresProfiles(ProfileStore):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, caller: Caller, profile_id: ProfileId) -> BusinessProfile | None:
        rows = await self._database.fetch_for(caller, GET, profile_id)
        return profile_of(rows[0]) if rows else None

    async def list(
        self, caller: Caller, *, deleted: bool, after: Cursor | None, profiles_max: int
    ) -> list[BusinessProfile]:
        after = after or LATEST
        deleted_within = RESTORABLE_FOR if deleted else None
        rows = await self._database.fetch_for(caller, LIST, deleted_within, after.at, after.id, profiles_max)
        return [profile_of(row) for row in rows]

    @asynccontextmanager
    async def transaction(self, caller: Caller) -> AsyncGenerator[AccountProfiles]:
        async with self._database.account(caller) as account:
            yield PostgresAccountProfiles(account)


def _values(content: ProfileContent) -> tuple[object, ...]:
    """In the order of the columns in the statements."""
    customer = content.ideal_customer
    rate = customer.engagement_rate_min
    return (
        content.name,
        content.website,
        content.industry,
        content.summary,
        content.offering,
        content.target_audience,
        content.value_proposition,
        content.tone,
        content.outreach_goal,
        content.language,
        customer.followers_min,
        customer.followers_max,
        None if rate is None else round(rate * 100),
        *(getattr(customer, name) for name in LISTS),
    )


def profile_of(row: Record) -> BusinessProfile:
    hundredths: int | None = row["engagement_rate_min_hundredths"]
    customer = IdealCustomer(
        followers_min=row["followers_min"],
        followers_max=row["followers_max"],
        engagement_rate_min=None if hundredths is None else hundredths / 100,
        **{name: tuple(row[name]) for name in LISTS},
    )
    texts = {name: row[name] for name in ProfileContent.__struct_fields__ if name != "ideal_customer"}
    return BusinessProfile(
        content=ProfileContent(**texts, ideal_customer=customer),
        **{name: row[name] for name in BusinessProfile.__struct_fields__ if name != "content"},
    )
