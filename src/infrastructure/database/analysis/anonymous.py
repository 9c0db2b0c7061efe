from datetime import timedelta
from typing import LiteralString

import msgspec

from features.analysis.application.ports import AnonymousAnalysis, AnonymousResults, AnonymousRun, RunPayer
from features.analysis.domain.anonymous import ANONYMOUS_ACCOUNT, AnonymousResult
from features.analysis.domain.requests import NewAnalysis
from infrastructure.database.analysis.run_starter import start_arguments, started_run
from infrastructure.database.clients import Database
from shared.ids import RunId

READABLE_FOR = timedelta(hours=24)

# One statement, so that the run and its token are created together or not at all.
START: LiteralString = """
with started as (
    select s.*, clock_timestamp() + $10::interval as expires_at
    from runs.start_analysis($1, $2, $3, $4, $5, $6, $7, $8, $9) as s
), analysis as (
    insert into public.anonymous_analyses (run_id, expires_at)
    select run_id, expires_at from started where run_id is not null
    on conflict (run_id) do update set expires_at = excluded.expires_at
), token as (
    insert into public.anonymous_tokens (token_hash, run_id, expires_at)
    select $11::bytea, run_id, expires_at from started where run_id is not null
)
select * from started
"""
SAVE: LiteralString = "update public.anonymous_analyses set result = $2 where run_id = $1"
FIND: LiteralString = """
select r.status, r.progress, r.current_step, r.outcome, a.result, t.expires_at
from public.anonymous_tokens as t
join public.anonymous_analyses as a on a.run_id = t.run_id
join public.runs as r on r.account_id = $2 and r.id = t.run_id
where t.token_hash = $1 and t.expires_at > clock_timestamp()
"""


class PostgresAnonymousResults(AnonymousResults):
    def __init__(self, database: Database) -> None:
        self._session = database.admin("anonymous analyses")

    async def start(self, run_id: RunId, order: NewAnalysis, *, token_hash: bytes) -> AnonymousRun:
        arguments = start_arguments(run_id, RunPayer(account_id=ANONYMOUS_ACCOUNT), order, 0)
        (row,) = await self._session.fetch(START, *arguments, READABLE_FOR, token_hash)
        started = started_run(row, 0)
        return AnonymousRun(run_id=started.run_id, status=started.status, expires_at=row["expires_at"])

    async def save(self, run_id: RunId, result: AnonymousResult) -> None:
        await self._session.fetch(SAVE, run_id, msgspec.json.encode(result).decode())

    async def find(self, token_hash: bytes) -> AnonymousAnalysis | None:
        rows = await self._session.fetch(FIND, token_hash, ANONYMOUS_ACCOUNT)
        if not rows:
            return None
        found = dict(rows[0])
        result = found.pop("result")
        return AnonymousAnalysis(**found, result=result and msgspec.json.decode(result, type=AnonymousResult))
