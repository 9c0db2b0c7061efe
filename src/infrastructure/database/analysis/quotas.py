"""Quotas, own fetches and bulk pages of the caller's account, read under row-level security."""

from typing import LiteralString

import msgspec

from features.analysis.application.ports import AnalysisQuotaReader, AnalysisQuotas, BulkReader, FetchReader
from features.analysis.domain.bulk import BulkPage, ItemStatus, PageItem, Rejection
from features.analysis.domain.eligibility import OwnFetch
from features.analysis.domain.profile.facts import Facts
from features.analysis.domain.requests import NewAnalysis, NewBulkAnalysis
from features.analysis.domain.scoring.ideal_customer import IdealCustomer
from features.business.domain.errors import BusinessProfileNotFound
from infrastructure.database.clients import Database
from shared.caller import Caller
from shared.ids import BusinessProfileId, RunId

QUOTAS: LiteralString = """
select p.name as plan, p.runs_at_once, p.light_per_hour, p.bulk_max, c.credits_available,
    b.followers_min, b.followers_max, b.engagement_rate_min_hundredths,
    (
        select count(*) from public.runs as r
        where r.account_id = a.id and r.uses_concurrency_slot and r.admitted_at is not null
            and r.status in ('queued', 'processing', 'paused')
    ) as runs_at_work,
    (
        select r.id from public.runs as r
        where r.account_id = a.id and r.dedup_key = $3 and r.status in ('queued', 'processing', 'paused')
    ) as duplicate_run_id
from public.accounts as a
join public.plans as p on p.name = a.plan
join public.business_profiles as b on b.account_id = a.id and b.id = $2 and b.deleted_at is null
cross join lateral caller.credit_balance(current_setting('request.jwt.claims'), a.id) as c
where a.id = $1
"""
# Results of the account's own runs for a profile in the last 24 hours, the newest first. A quote uses them
# instead of the profile cache, which all accounts share. An analysis has its facts; a rejected run has only
# its outcome, and a violation counts for the same business profile while that is unchanged.
FETCHES: LiteralString = """
select s.analysis_type, 'ok' as outcome, s.scraped_at, s.result -> 'facts' as facts
from public.leads as l
join public.analyses as s on s.account_id = l.account_id and s.lead_id = l.id
where l.account_id = $1 and l.username = $3 and l.deleted_at is null
    and s.deleted_at is null and s.scraped_at > clock_timestamp() - interval '24 hours'
union all
select r.subject ->> 'type', r.outcome, r.ended_at, null
from public.runs as r
where r.account_id = $1 and r.created_at > clock_timestamp() - interval '24 hours' and r.status = 'failed'
    and r.kind in ('light_analysis', 'deep_analysis', 'xray_analysis')
    and r.subject ->> 'username' = $3
    and (r.outcome in ('private', 'not_found', 'restricted')
        or r.outcome = 'icp_violation' and exists (
            select from public.business_profiles as b
            where b.account_id = $1 and b.id = $2
                and b.id = (r.subject ->> 'business_profile_id')::uuid and b.updated_at <= r.created_at))
order by 3 desc
"""
POSITION_MAX = 2**31 - 1  # of the integer column; a cursor may hold a larger number
# A bulk run with a page of its items after a position, each with the status of its own run.
BULK: LiteralString = """
with bulk as (
    select * from public.runs where account_id = $1 and id = $2 and kind = 'bulk_analysis'
), items as (
    select i.position, i.username, i.item_run_id as run_id,
        case
            when r.ended_at is not null then r.status
            -- A bulk run that was cancelled before it began has recorded nothing.
            when i.status = 'waiting' and bulk.status = 'cancelled' then 'cancelled'
            when i.status = 'waiting' and bulk.ended_at is not null then 'skipped'
            else i.status
        end as status,
        coalesce(r.outcome, i.outcome) as outcome
    from bulk
    join public.bulk_items as i on i.account_id = bulk.account_id and i.run_id = bulk.id
    left join public.runs as r on r.account_id = i.account_id and r.id = i.item_run_id
)
select bulk.id as run_id, bulk.status, bulk.progress, bulk.current_step, bulk.subject, bulk.created_at,
    bulk.ended_at,
    (
        select jsonb_object_agg(c.status, c.count)
        from (select i.status, count(*) from items as i group by 1) as c
    ) as counts,
    (
        select jsonb_agg(p order by p.position)
        from (select * from items as i where i.position > $3 order by i.position limit $4) as p
    ) as items,
    (
        select jsonb_agg(to_jsonb(r) - 'account_id' - 'run_id' order by r.position)
        from public.bulk_rejections as r where r.account_id = bulk.account_id and r.run_id = bulk.id
    ) as rejections
from bulk
"""


class PostgresAnalysisQuotas(AnalysisQuotaReader, FetchReader, BulkReader):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def terms(
        self, caller: Caller, business_profile_id: BusinessProfileId, *, dedup_key: str | None = None
    ) -> AnalysisQuotas:
        rows = await self._database.fetch_for(caller, QUOTAS, business_profile_id, dedup_key)
        if not rows:
            raise BusinessProfileNotFound
        (row,) = rows
        hundredths: int | None = row["engagement_rate_min_hundredths"]
        customer = IdealCustomer(
            followers_min=row["followers_min"],
            followers_max=row["followers_max"],
            engagement_rate_min=None if hundredths is None else hundredths / 100,
        )
        return AnalysisQuotas(
            customer=customer,
            **{name: row[name] for name in AnalysisQuotas.__struct_fields__ if name != "customer"},
        )

    async def fetches(self, caller: Caller, order: NewAnalysis) -> list[OwnFetch]:
        rows = await self._database.fetch_for(caller, FETCHES, order.business_profile_id, order.username)
        return [
            OwnFetch(
                analysis_type=row["analysis_type"],
                outcome=row["outcome"],
                scraped_at=row["scraped_at"],
                facts=msgspec.json.decode(row["facts"], type=Facts) if row["facts"] else None,
            )
            for row in rows
        ]

    async def page(
        self, caller: Caller, run_id: RunId, *, after_position: int, items_max: int
    ) -> BulkPage | None:
        rows = await self._database.fetch_for(
            caller, BULK, run_id, min(after_position, POSITION_MAX), items_max
        )
        if not rows:
            return None
        (row,) = rows
        return BulkPage(
            run_id=row["run_id"],
            status=row["status"],
            progress=row["progress"],
            current_step=row["current_step"],
            order=msgspec.json.decode(row["subject"], type=NewBulkAnalysis),
            created_at=row["created_at"],
            ended_at=row["ended_at"],
            counts=msgspec.json.decode(row["counts"] or "{}", type=dict[ItemStatus, int]),
            items=msgspec.json.decode(row["items"] or "[]", type=list[PageItem]),
            rejections=msgspec.json.decode(row["rejections"] or "[]", type=list[Rejection]),
        )
