from typing import LiteralString
from uuid import UUID

from features.operations.application.ports import AuditLogReader
from features.operations.domain.audit_log import AuditLogFilter, StoredAuditEntry
from infrastructure.database.clients import AdminClient
from shared.middleware.audit_log import AuditEntry, AuditLog
from shared.pagination import Cursor

BEGIN: LiteralString = """
insert into public.audit_log (
    id, operator_id, operation, method, path, account_id, request_id, body_sha256, reason
) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
END: LiteralString = """
update public.audit_log set status = $2, code = $3, ended_at = clock_timestamp() where id = $1
"""
PAGE: LiteralString = """
select id, at, operator_id, operation, method, path, account_id, request_id,
    encode(body_sha256, 'hex') as body_sha256, reason, status, code, ended_at
from public.audit_log as a
where ($1::uuid is null or a.operator_id = $1) and ($2::text is null or a.operation = $2)
    and ($3::uuid is null or a.account_id = $3)
    and ($4::timestamptz is null or (a.at, a.id) < ($4, $5::uuid))
order by a.at desc, a.id desc limit $6
"""


class PostgresAuditLog(AuditLog, AuditLogReader):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def begin(self, act: AuditEntry) -> None:
        await self._session.fetch(
            BEGIN,
            act.id,
            act.operator_id,
            act.operation,
            act.method,
            act.path,
            act.account_id,
            act.request_id,
            act.body_sha256,
            act.reason,
        )

    async def end(self, act_id: UUID, *, status: int, code: str | None) -> None:
        await self._session.fetch(END, act_id, status, code)

    async def page(
        self, only: AuditLogFilter, *, before: Cursor | None, entries_max: int
    ) -> list[StoredAuditEntry]:
        at, act_id = (before.at, before.id) if before else (None, None)
        rows = await self._session.fetch(
            PAGE, only.operator_id, only.operation, only.account_id, at, act_id, entries_max
        )
        return [StoredAuditEntry(**row) for row in rows]
