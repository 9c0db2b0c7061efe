import uuid
from typing import LiteralString

from features.costs.application.ports import CallLog
from features.costs.domain.provider_calls import ModelCall, ScrapeCall
from infrastructure.database.clients import Database
from infrastructure.database.durable_log import DurableLog, bigint, integer, number, text, text_or_none

# The row is stored even if the account has been deleted, because the money is spent; the lock keeps a
# concurrent deletion from breaking the foreign key.
RECORD_MODEL_CALLS: LiteralString = """
insert into public.ai_usage_logs (
    id, created_at, call_id, attempt, account_id, user_id, run_id, provider, model, task, outcome,
    tokens_in, tokens_cached, tokens_cache_written, tokens_out, tokens_reasoning, is_estimated,
    cost_nanodollars, latency_ms, cache, is_simulated, error, gateway_log_id
)
select c.id, c.created_at, c.call_id, c.attempt,
    (select a.id from public.accounts as a where a.id = c.account_id for key share),
    c.user_id, c.run_id, c.provider, c.model, c.task, c.outcome, c.tokens_in, c.tokens_cached,
    c.tokens_cache_written, c.tokens_out, c.tokens_reasoning, c.is_estimated, c.cost_nanodollars,
    c.latency_ms, c.cache, c.is_simulated, c.error, c.gateway_log_id
from unnest(
    $1::uuid[], $2::timestamptz[], $3::uuid[], $4::integer[], $5::uuid[], $6::uuid[], $7::uuid[],
    $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[],
    $15::bigint[], $16::bigint[], $17::boolean[], $18::bigint[], $19::double precision[], $20::text[],
    $21::boolean[], $22::text[], $23::text[]
) as c (
    id, created_at, call_id, attempt, account_id, user_id, run_id, provider, model, task, outcome,
    tokens_in, tokens_cached, tokens_cache_written, tokens_out, tokens_reasoning, is_estimated,
    cost_nanodollars, latency_ms, cache, is_simulated, error, gateway_log_id
)
on conflict (id) do nothing
"""
RECORD_SCRAPES: LiteralString = """
insert into public.scrape_logs (
    id, created_at, account_id, user_id, run_id, provider, username, outcome, posts_asked, posts_found,
    cost_nanodollars, is_estimated, duration_ms, is_simulated, provider_run_id
)
select c.id, c.created_at,
    (select a.id from public.accounts as a where a.id = c.account_id for key share),
    c.user_id, c.run_id, c.provider, c.username, c.outcome, c.posts_asked, c.posts_found,
    c.cost_nanodollars, c.is_estimated, c.duration_ms, c.is_simulated, c.provider_run_id
from unnest(
    $1::uuid[], $2::timestamptz[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[],
    $9::integer[], $10::integer[], $11::bigint[], $12::boolean[], $13::double precision[],
    $14::boolean[], $15::text[]
) as c (
    id, created_at, account_id, user_id, run_id, provider, username, outcome, posts_asked, posts_found,
    cost_nanodollars, is_estimated, duration_ms, is_simulated, provider_run_id
)
on conflict (id) do nothing
"""


class PostgresCallLog(CallLog):
    def __init__(self, database: Database) -> None:
        session = database.admin("call log")
        self._model_calls: DurableLog[tuple[object, ...]] = DurableLog(
            "model calls", session, RECORD_MODEL_CALLS
        )
        self._scrapes: DurableLog[tuple[object, ...]] = DurableLog("scrapes", session, RECORD_SCRAPES)

    async def record_model_call(self, call: ModelCall) -> None:
        await self._model_calls.write(_model_call_row(call))

    async def record_scrape(self, call: ScrapeCall) -> None:
        await self._scrapes.write(_scrape_row(call))

    async def close(self) -> None:
        await self._model_calls.close()
        await self._scrapes.close()


def _model_call_row(call: ModelCall) -> tuple[object, ...]:
    cost_owner, usage = call.cost_owner, call.usage
    return (
        uuid.uuid4(),
        call.at,
        call.call_id,
        integer(call.attempt),
        cost_owner.account_id,
        cost_owner.user_id,
        cost_owner.run_id,
        text(call.provider),
        text(call.model),
        text(call.task),
        call.outcome,
        bigint(usage.tokens_in),
        bigint(usage.tokens_cached),
        bigint(usage.tokens_cache_written),
        bigint(usage.tokens_out),
        bigint(usage.tokens_reasoning),
        call.is_estimated,
        None if call.cost_nanodollars is None else bigint(call.cost_nanodollars),
        number(call.latency_ms),
        call.cache,
        call.is_simulated,
        text_or_none(call.error),
        text_or_none(call.gateway_log_id),
    )


def _scrape_row(call: ScrapeCall) -> tuple[object, ...]:
    cost_owner = call.cost_owner
    return (
        uuid.uuid4(),
        call.at,
        cost_owner.account_id,
        cost_owner.user_id,
        cost_owner.run_id,
        text(call.provider),
        text(call.username),
        text(call.outcome),
        integer(call.posts_asked),
        integer(call.posts_found),
        None if call.cost_nanodollars is None else bigint(call.cost_nanodollars),
        call.is_estimated,
        number(call.duration_ms),
        call.is_simulated,
        text_or_none(call.provider_run_id),
    )
