import sys
from typing import LiteralString, NamedTuple

from asyncpg import Record

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from infrastructure.ai.completion_cache import CachedCompletion, CompletionStore
from infrastructure.database.clients import Database
from infrastructure.resilience.micro_batcher import MicroBatcher
from shared.ids import AccountId

FIND: LiteralString = """
select a.account_id, a.completion_key, a.completion, a.is_compressed, a.provider, a.model, a.is_simulated
from unnest($1::uuid[], $2::bytea[]) as asked (account_id, completion_key)
join public.completion_cache as a using (account_id, completion_key)
where a.expires_at > statement_timestamp()
"""
# Ordered by key, so that concurrent writers cannot deadlock. Rows of deleted accounts are skipped.
PUT: LiteralString = """
insert into public.completion_cache (
    account_id, completion_key, completion, is_compressed, provider, model, is_simulated, expires_at
)
select k.account_id, k.completion_key, k.completion, k.is_compressed, k.provider, k.model, k.is_simulated,
    statement_timestamp() + $8 * interval '1 second'
from unnest(
    $1::uuid[], $2::bytea[], $3::bytea[], $4::boolean[], $5::text[], $6::text[], $7::boolean[]
) as k (account_id, completion_key, completion, is_compressed, provider, model, is_simulated)
where exists (select from public.accounts as a where a.id = k.account_id)
order by k.account_id, k.completion_key
on conflict (account_id, completion_key) do update set
    completion = excluded.completion, is_compressed = excluded.is_compressed, provider = excluded.provider,
    model = excluded.model, is_simulated = excluded.is_simulated,
    created_at = statement_timestamp(), expires_at = excluded.expires_at
"""
RETENTION_S = 24 * 3600.0
COMPRESSED_ABOVE_BYTES = 1_000
TEXT_BYTES_MAX = 1_000_000


class _Key(NamedTuple):
    account_id: AccountId
    completion_key: bytes


class PostgresCompletionCache(CompletionStore):
    """Cache of completions; concurrent reads and writes are micro-batched."""

    def __init__(self, database: Database, *, remembered_for_s: float = RETENTION_S) -> None:
        self._session = database.admin("completion cache")
        self._remembered_for_s = remembered_for_s
        self._finds: MicroBatcher[_Key, CachedCompletion | None] = MicroBatcher(self._find_all)
        self._puts: MicroBatcher[tuple[_Key, CachedCompletion], None] = MicroBatcher(self._put_all)

    async def find(self, account_id: AccountId, completion_key: bytes) -> CachedCompletion | None:
        return await self._finds.ask(_Key(account_id, completion_key))

    async def put(self, account_id: AccountId, completion_key: bytes, completion: CachedCompletion) -> None:
        await self._puts.ask((_Key(account_id, completion_key), completion))

    async def _find_all(self, keys: list[_Key]) -> list[CachedCompletion | None]:
        asked = list(set(keys))
        rows = await self._session.fetch(
            FIND, [key.account_id for key in asked], [key.completion_key for key in asked]
        )
        found = {_Key(row["account_id"], row["completion_key"]): _stored(row) for row in rows}
        return [found.get(key) for key in keys]

    async def _put_all(self, completions: list[tuple[_Key, CachedCompletion]]) -> list[None]:
        kept = dict(completions)  # the latest per key, because one statement cannot write a row twice
        texts = [_packed(completion.text) for completion in kept.values()]
        await self._session.fetch(
            PUT,
            [key.account_id for key in kept],
            [key.completion_key for key in kept],
            [body for body, _ in texts],
            [is_compressed for _, is_compressed in texts],
            [completion.provider for completion in kept.values()],
            [completion.model for completion in kept.values()],
            [completion.is_simulated for completion in kept.values()],
            self._remembered_for_s,
        )
        return [None] * len(completions)


def _packed(text: str) -> tuple[bytes, bool]:
    body = text.encode()
    return (zstd.compress(body), True) if len(body) > COMPRESSED_ABOVE_BYTES else (body, False)


def _stored(row: Record) -> CachedCompletion | None:
    """Returns None if the entry cannot be decoded, so that the prompt is sent again."""
    body: bytes = row["completion"]
    try:
        if row["is_compressed"]:
            body = zstd.ZstdDecompressor().decompress(body, TEXT_BYTES_MAX)
        text = body.decode()
    except (zstd.ZstdError, UnicodeDecodeError):
        return None
    return CachedCompletion(
        text=text, provider=row["provider"], model=row["model"], is_simulated=row["is_simulated"]
    )
