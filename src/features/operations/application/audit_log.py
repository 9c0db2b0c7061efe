from dataclasses import dataclass

from features.operations.application.ports import AuditLogReader
from features.operations.domain.audit_log import AuditLogFilter, StoredAuditEntry
from shared.pagination import Cursor, Page, decode_cursor, page_of


@dataclass(frozen=True, slots=True)
class AuditEntries:
    """Read access to the operators' audit log; ``shared.middleware.audit_log`` writes it."""

    log: AuditLogReader

    async def page(self, only: AuditLogFilter, *, cursor: str | None, limit: int) -> Page[StoredAuditEntry]:
        entries = await self.log.page(only, before=decode_cursor(cursor), entries_max=limit + 1)
        return page_of(entries, limit, lambda entry: Cursor(entry.at, entry.id))
