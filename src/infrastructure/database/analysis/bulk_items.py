from collections.abc import Sequence
from typing import LiteralString

from asyncpg import Record

from features.analysis.application.ports import BulkItems, UnstartedEnd
from features.analysis.domain.bulk import BulkItem, Counts, Rejection
from infrastructure.database.clients import AdminClient
from shared.ids import AccountId, RunId

ADD_ITEMS: LiteralString = """
insert into public.bulk_items (account_id, run_id, position, username)
select $1, $2, i.position, i.username from unnest($3::integer[], $4::text[]) as i (position, username)
on conflict do nothing
"""
ADD_REJECTIONS: LiteralString = """
insert into public.bulk_rejections (account_id, run_id, position, text, code, reason)
select $1, $2, r.* from unnest($3::integer[], $4::text[], $5::text[], $6::text[]) as r
on conflict do nothing
"""
UNSTARTED: LiteralString = """
select * from public.bulk_items
where account_id = $1 and run_id = $2 and status = 'waiting'
order by position
limit $3
"""
MARK_STARTED: LiteralString = """
update public.bulk_items set status = 'started', item_run_id = $4
where account_id = $1 and run_id = $2 and position = $3 and status = 'waiting'
"""
# The counts come from the computed rows, because a statement does not see its own update. An item whose run
# was purged before its end was stored counts as failed; otherwise the bulk run would never end.
SETTLE: LiteralString = """
with now as (
    select i.position,
        case
            when i.status <> 'started' or r.ended_at is null and i.item_run_id is not null then i.status
            else coalesce(r.status, 'failed')
        end as status,
        case
            when i.status <> 'started' or r.ended_at is null and i.item_run_id is not null then i.outcome
            else coalesce(r.outcome, 'internal_failure')
        end as outcome
    from public.bulk_items as i
    left join public.runs as r on r.account_id = i.account_id and r.id = i.item_run_id
    where i.account_id = $1 and i.run_id = $2
), noted as (
    update public.bulk_items as i set status = n.status, outcome = n.outcome
    from now as n
    where i.account_id = $1 and i.run_id = $2 and i.position = n.position
        and i.status = 'started' and n.status <> 'started'
)
select count(*) as total,
    count(*) filter (where status not in ('waiting', 'started')) as ended,
    count(*) filter (where status = 'completed') as completed,
    count(*) filter (where status = 'failed') as failed,
    count(*) filter (where status = 'cancelled') as cancelled,
    count(*) filter (where status = 'skipped') as skipped,
    count(*) filter (where status = 'started') as active
from now
"""
END_UNSTARTED: LiteralString = """
update public.bulk_items set status = $3, outcome = $4
where account_id = $1 and run_id = $2 and status = 'waiting'
returning position
"""


class PostgresBulkItems(BulkItems):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def add(
        self,
        account_id: AccountId,
        run_id: RunId,
        usernames: Sequence[tuple[int, str]],
        rejections: Sequence[Rejection],
    ) -> None:
        async with self._session.transaction():
            await self._session.fetch(
                ADD_ITEMS,
                account_id,
                run_id,
                [position for position, _ in usernames],
                [username for _, username in usernames],
            )
            await self._session.fetch(
                ADD_REJECTIONS,
                account_id,
                run_id,
                [rejection.position for rejection in rejections],
                [rejection.text for rejection in rejections],
                [rejection.code for rejection in rejections],
                [rejection.reason for rejection in rejections],
            )

    async def unstarted(self, account_id: AccountId, run_id: RunId, items_max: int) -> list[BulkItem]:
        return [_item(row) for row in await self._session.fetch(UNSTARTED, account_id, run_id, items_max)]

    async def mark_started(
        self, account_id: AccountId, run_id: RunId, position: int, item_run_id: RunId
    ) -> None:
        await self._session.fetch(MARK_STARTED, account_id, run_id, position, item_run_id)

    async def settle(self, account_id: AccountId, run_id: RunId) -> Counts:
        (row,) = await self._session.fetch(SETTLE, account_id, run_id)
        return Counts(**row)

    async def end_unstarted(
        self, account_id: AccountId, run_id: RunId, status: UnstartedEnd, outcome: str
    ) -> int:
        return len(await self._session.fetch(END_UNSTARTED, account_id, run_id, status, outcome))


def _item(row: Record) -> BulkItem:
    return BulkItem(**row)
