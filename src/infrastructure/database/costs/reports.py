"""SQL reports for operators."""

from typing import LiteralString
from uuid import UUID

import msgspec
from asyncpg import Record

from features.costs.application.ports import CostFigures, RunLedger, RunSpending, Step
from features.costs.domain.breakdown import CallCosts
from features.costs.domain.reports import (
    AccountSpending,
    AccountSpendings,
    CacheRate,
    CostLine,
    Latency,
    Refusal,
    SuccessRate,
    Window,
)
from infrastructure.database.clients import Database
from infrastructure.database.costs.metrics import ANALYSIS, PROFILE_CACHE

# O-144. Includes the account with which the share is reached. Calls without a price add no cost, so accounts
# with only such calls are left out.
SPENDERS: LiteralString = """
with by_user as (
    select account_id, user_id, count(*) as calls,
        count(*) filter (where cost_nanodollars is null) as calls_unpriced,
        coalesce(sum(cost_nanodollars), 0) as cost
    from public.ai_usage_logs
    where created_at >= $1 and created_at < $2
    group by account_id, user_id
), by_account as (
    select account_id, sum(calls)::bigint as calls, sum(calls_unpriced)::bigint as calls_unpriced,
        sum(cost) as cost,
        json_agg(json_build_object('user_id', user_id, 'cost_nanodollars', cost::bigint)
            order by cost desc, user_id) as users
    from by_user group by account_id
), ranked as (
    select *, sum(cost) over (order by cost desc, account_id rows unbounded preceding) as cumulative,
        sum(cost) over () as total
    from by_account
)
select account_id, calls, calls_unpriced, cost::bigint as cost_nanodollars,
    cumulative::bigint as cumulative_nanodollars, users::text, total::bigint
from ranked
where (cumulative - cost) * 100 < total * $3::integer
order by cost desc, account_id limit $4
"""
# O-145. Requests that are only counted have no duration.
LATENCIES: LiteralString = """
with logged as (
    select method, route, count(*) as requests, count(*) filter (where status >= 500) as failures,
        percentile_cont(0.5) within group (order by duration_ms) as p50_ms,
        percentile_cont(0.95) within group (order by duration_ms) as p95_ms
    from traffic.requests where at >= $1 and at < $2
    group by method, route
), counted as (
    select method, route, sum(requests)::bigint as requests,
        coalesce(sum(requests) filter (where status >= 500), 0)::bigint as failures
    from traffic.request_counts where minute >= $1 and minute < $2
    group by method, route
)
select method, route, coalesce(l.requests, 0) + coalesce(c.requests, 0) as requests,
    coalesce(l.failures, 0) + coalesce(c.failures, 0) as failures, p50_ms, p95_ms
from logged as l full join counted as c using (method, route)
order by p95_ms desc nulls last, method, route limit $3
"""
# O-053.
REFUSALS: LiteralString = """
select method, route, status, code, sum(requests)::bigint as requests,
    coalesce(sum(requests) filter (where account_id is null), 0)::bigint as requests_without_account
from (
    select method, route, status, coalesce(code, '') as code, account_id, 1 as requests
    from traffic.requests where at >= $1 and at < $2 and status >= 400
    union all
    select method, route, status, code, null, requests
    from traffic.request_counts where minute >= $1 and minute < $2 and status >= 400
) as refused
group by method, route, status, code
order by requests desc, method, route, status, code limit $3
"""
# O-146. In the completion cache a prompt counts once, regardless of its attempts.
CACHE_RATES: LiteralString = """
select date_trunc($3, at, 'UTC') as at, cache, sum(hits)::bigint as hits, sum(misses)::bigint as misses
from (
    select at, 'profiles' as cache, (blobs[3] = 'hit')::integer as hits,
        (blobs[3] <> 'hit')::integer as misses
    from traffic.data_points where kind = $5 and at >= $1 and at < $2
    union all
    select min(created_at), 'answers', bool_or(cache <> 'none')::integer,
        bool_and(cache = 'none')::integer
    from public.ai_usage_logs where created_at >= $1 and created_at < $2 and outcome <> 'skipped'
    group by call_id
) as lookups
group by 1, 2
order by 1 desc, 2 limit $4
"""
# O-147.
SUCCESS_RATES: LiteralString = """
select (at at time zone 'UTC')::date as day, blobs[3] as analysis_type,
    count(*) filter (where blobs[4] = 'completed') as completed,
    count(*) filter (where blobs[4] not in ('completed', 'cancelled')) as failed,
    count(*) filter (where blobs[4] = 'cancelled') as cancelled
from traffic.data_points
where kind = $4 and at >= $1 and at < $2
group by 1, 2
order by 1 desc, 2 limit $3
"""
COSTS: LiteralString = """
select day, provider, model, task, is_simulated, count(*) as calls,
    count(*) filter (where cache <> 'none') as calls_cached,
    count(*) filter (where is_failed) as calls_failed,
    count(*) filter (where cost_nanodollars is null) as calls_unpriced,
    coalesce(sum(tokens_in), 0)::bigint as tokens_in,
    coalesce(sum(tokens_cached), 0)::bigint as tokens_cached,
    coalesce(sum(tokens_out), 0)::bigint as tokens_out,
    coalesce(sum(cost_nanodollars), 0)::bigint as cost_nanodollars
from (
    select (created_at at time zone 'UTC')::date as day, provider, model, task, is_simulated, cache,
        outcome <> 'answered' as is_failed, tokens_in, tokens_cached, tokens_out, cost_nanodollars
    from public.ai_usage_logs where created_at >= $1 and created_at < $2
    union all
    select (created_at at time zone 'UTC')::date, provider, '', 'scrape', is_simulated, 'none',
        outcome in ('unavailable', 'timeout', 'cancelled'), 0, 0, 0, cost_nanodollars
    from public.scrape_logs where created_at >= $1 and created_at < $2
) as calls
group by day, provider, model, task, is_simulated
order by day desc, cost_nanodollars desc, provider, model, task, is_simulated limit $3
"""
# The ledger records the charge of a run under the reference run:<id>.
RUN: LiteralString = """
with model_calls as (
    select account_id, cost_nanodollars, latency_ms as duration_ms from public.ai_usage_logs where run_id = $1
), scrapes as (
    select account_id, cost_nanodollars, duration_ms from public.scrape_logs where run_id = $1
), charged as (
    select sum(h.credits_spent - h.credits_refunded)::bigint as credits from public.credit_holds as h
    where h.reference = 'run:' || $1::uuid and h.account_id in (
        select account_id from model_calls union select account_id from scrapes
    )
)
select coalesce((select credits from charged), 0) as credits_charged,
    kind, count(cost) as priced,
    count(kind) as calls, coalesce(sum(cost), 0)::bigint as cost, coalesce(sum(duration), 0) as duration
from (
    select 'model_calls', cost_nanodollars, duration_ms from model_calls
    union all
    select 'scrapes', cost_nanodollars, duration_ms from scrapes
) as c (kind, cost, duration)
group by kind
"""
NOTHING = CallCosts(calls=0, calls_unpriced=0, cost_nanodollars=0, duration_ms=0.0)


class PostgresCostFigures(CostFigures):
    def __init__(self, database: Database) -> None:
        self._session = database.admin("cost reports")

    async def spenders(self, window: Window, *, share_percent: int, lines_max: int) -> AccountSpendings:
        rows = await self._session.fetch(SPENDERS, window.since, window.until, share_percent, lines_max)
        return AccountSpendings(
            cost_nanodollars=rows[0]["total"] if rows else 0,
            accounts=[_spender(row) for row in rows],
        )

    async def latencies(self, window: Window, *, lines_max: int) -> list[Latency]:
        rows = await self._session.fetch(LATENCIES, window.since, window.until, lines_max)
        return [Latency(**row) for row in rows]

    async def refusals(self, window: Window, *, lines_max: int) -> list[Refusal]:
        rows = await self._session.fetch(REFUSALS, window.since, window.until, lines_max)
        return [Refusal(**row) for row in rows]

    async def cache_rates(self, window: Window, *, step: Step, lines_max: int) -> list[CacheRate]:
        rows = await self._session.fetch(
            CACHE_RATES, window.since, window.until, step, lines_max, PROFILE_CACHE
        )
        return [CacheRate(**row) for row in rows]

    async def success_rates(self, window: Window, *, lines_max: int) -> list[SuccessRate]:
        rows = await self._session.fetch(SUCCESS_RATES, window.since, window.until, lines_max, ANALYSIS)
        return [SuccessRate(**row) for row in rows]

    async def costs(self, window: Window, *, lines_max: int) -> list[CostLine]:
        rows = await self._session.fetch(COSTS, window.since, window.until, lines_max)
        return [CostLine(**row) for row in rows]


def _spender(row: Record) -> AccountSpending:
    fields = {name: row[name] for name in AccountSpending.__struct_fields__ if name != "users"}
    return msgspec.convert({**fields, "users": msgspec.json.decode(row["users"])}, AccountSpending)


class PostgresRunLedger(RunLedger):
    def __init__(self, database: Database) -> None:
        self._session = database.admin("run costs")

    async def spending(self, run_id: UUID) -> RunSpending:
        rows = {row["kind"]: row for row in await self._session.fetch(RUN, run_id)}
        return RunSpending(
            scrapes=_call_costs(rows.get("scrapes")),
            model_calls=_call_costs(rows.get("model_calls")),
            credits_charged=next((row["credits_charged"] for row in rows.values()), 0),
        )


def _call_costs(row: Record | None) -> CallCosts:
    if row is None:
        return NOTHING
    return CallCosts(
        calls=row["calls"],
        calls_unpriced=row["calls"] - row["priced"],
        cost_nanodollars=row["cost"],
        duration_ms=row["duration"],
    )
