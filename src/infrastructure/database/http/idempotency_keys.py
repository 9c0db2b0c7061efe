from typing import LiteralString
from uuid import UUID

from infrastructure.database.clients import Database
from shared.middleware.idempotency import LOCK_S, RETENTION_S, IdempotencyKeys, StartedAttempt

BEGIN: LiteralString = "select * from traffic.begin_attempt($1, $2, $3, $4, $5)"
FINISH: LiteralString = """
update traffic.idempotency_keys set response = $3 where id = $1 and attempt = $2
"""
ABANDON: LiteralString = """
update traffic.idempotency_keys set locked_until = clock_timestamp()
where id = $1 and attempt = $2 and response is null
"""


class PostgresIdempotencyKeys(IdempotencyKeys):
    def __init__(self, database: Database) -> None:
        self._session = database.admin("idempotency keys")

    async def begin(self, key_id: bytes, fingerprint: bytes, attempt: UUID) -> StartedAttempt:
        (row,) = await self._session.fetch(BEGIN, key_id, fingerprint, attempt, LOCK_S, RETENTION_S)
        return StartedAttempt(row["outcome"], row["effect_id"], row["response"])

    async def finish(self, key_id: bytes, attempt: UUID, response: bytes) -> None:
        await self._session.fetch(FINISH, key_id, attempt, response)

    async def abandon(self, key_id: bytes, attempt: UUID) -> None:
        await self._session.fetch(ABANDON, key_id, attempt)
