from __future__ import annotations  # asyncpg's classes are generic in their stubs only

from typing import LiteralString
from uuid import UUID

import msgspec
from asyncpg import Record

from features.runs.application.ports import Measurements, RunFilter, RunQueryStore, RunRetries
from features.runs.domain.errors import RunNotRetryable
from features.runs.domain.estimates import QueueFigures, Sample
from features.runs.domain.run import Run, StepStarted
from features.runs.domain.view import Children, RunSnapshot
from infrastructure.database.analysis.run_starter import start_refusal
from infrastructure.database.clients import AdminClient, Database
from infrastructure.database.runs.runs import run_of
from shared.caller import Caller, no_account
from shared.ids import AccountId, RunId, UserId
from shared.pagination import LATEST, Cursor

RUN: LiteralString = """
select (s.run).*, s.children_credits_held, s.children_credits_charged
from caller.run($1, $2, $3) as s
"""
# Children only if their parent is given.
RUNS: LiteralString = """
select r.*, c.children_credits_held, c.children_credits_charged
from (
    select * from public.runs
    where account_id = $1 and (created_at, id) < ($2, $3)
        and case when $4::uuid is null then parent_id is null else parent_id = $4 end
        and ($5::text is null or status = $5)
        and ($6::text is null or kind = $6)
        and ($7::timestamptz is null or created_at >= $7)
        and ($8::timestamptz is null or created_at < $8)
    order by created_at desc, id desc
    limit $9
) as r
cross join lateral (
    select coalesce(sum(c.credits_held), 0)::bigint as children_credits_held,
        coalesce(sum(c.credits_charged), 0)::bigint as children_credits_charged
    from public.runs as c where c.account_id = r.account_id and c.parent_id = r.id
) as c
order by r.created_at desc, r.id desc
"""
AHEAD_MAX = 1_000  # limits the cost of counting
# A run that is not admitted yet comes after all runs in the engine's queue.
QUEUE_FIGURES: LiteralString = """
select r.admitted_at is not null as is_admitted, p.runs_at_once,
    case when r.admitted_at is not null then 0 else (
        select count(*) from (
            select from public.runs as w
            where w.account_id = r.account_id and w.status = 'queued' and w.admitted_at is null
                and (w.created_at, w.id) < (r.created_at, r.id)
            limit $3
        ) as before
    ) end as account_ahead,
    (
        select count(*) from (
            select from dbos.workflow_status as w
            where w.queue_name = r.queue and w.status = 'ENQUEUED'
                and (own.priority is null or (w.priority, w.created_at) < (own.priority, own.created_at))
            limit $3
        ) as before
    ) as engine_ahead,
    (
        select count(*) from (
            select from dbos.workflow_status as w
            where w.queue_name = r.queue and w.status = 'PENDING'
            limit $3
        ) as busy
    ) as active
from public.runs as r
join public.accounts as a on a.id = r.account_id
join public.plans as p on p.name = a.plan
left join dbos.workflow_status as own on own.workflow_uuid = r.engine_id and own.status = 'ENQUEUED'
where r.account_id = $1 and r.id = $2 and r.status = 'queued'
"""
SAMPLES: LiteralString = """
select started_at, ended_at, steps from public.runs
where kind = $1 and status = 'completed' and started_at is not null
order by ended_at desc limit $2
"""
SAMPLES_MAX = 50
RETRY: LiteralString = """
select (a.result).outcome as result, (a.result).credits_available, ((a.result).run).*, a.bound, a.wait_s, (
    select r.credits_held from public.runs as r where r.account_id = $1 and r.id = $2
) as needed
from runs.retry($1, $2, $3, $4, $5, $6) as a
"""


class PostgresRunQueries(RunQueryStore):
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, caller: Caller, run_id: RunId) -> RunSnapshot | None:
        rows = await self._database.user(caller.claims).call(RUN, caller.chosen_account, run_id)
        if not rows:
            raise no_account(caller)
        return _snapshot(rows[0])

    async def list(
        self, caller: Caller, filters: RunFilter, *, after: Cursor | None, runs_max: int
    ) -> list[RunSnapshot]:
        after = after or LATEST
        rows = await self._database.fetch_for(
            caller,
            RUNS,
            after.at,
            after.id,
            filters.parent_id,
            filters.status,
            filters.kind,
            filters.since,
            filters.until,
            runs_max,
        )
        return [snapshot for row in rows if (snapshot := _snapshot(row))]


class PostgresMeasurements(Measurements):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def queue_figures(self, account_id: AccountId, run_id: RunId) -> QueueFigures | None:
        rows = await self._session.fetch(QUEUE_FIGURES, account_id, run_id, AHEAD_MAX)
        return QueueFigures(**rows[0]) if rows else None

    async def samples(self, kind: str) -> list[Sample]:
        return [
            Sample(
                started_at=row["started_at"],
                ended_at=row["ended_at"],
                steps=msgspec.json.decode(row["steps"], type=tuple[StepStarted, ...]),
            )
            for row in await self._session.fetch(SAMPLES, kind, SAMPLES_MAX)
        ]


class PostgresRetries(RunRetries):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def retry(
        self,
        account_id: AccountId,
        tried_id: RunId,
        run_id: RunId,
        *,
        user_id: UserId | None,
        api_key_id: UUID | None,
        refund_policy: int,
    ) -> Run | None:
        (row,) = await self._session.fetch(
            RETRY, account_id, tried_id, run_id, user_id, api_key_id, refund_policy
        )
        if row["result"] in ("started", "repeated", "duplicate"):
            return run_of(row)
        if row["result"] == "unknown":
            return None
        if row["result"] == "not_retryable":
            raise RunNotRetryable(status=row["status"])
        raise start_refusal(row["result"], row, row["needed"] or row["bound"])


def _snapshot(row: Record) -> RunSnapshot | None:
    run = run_of(row)
    if run is None:
        return None
    return RunSnapshot(
        run=run,
        children=Children(
            credits_held=row["children_credits_held"],
            credits_charged=row["children_credits_charged"],
        ),
    )
