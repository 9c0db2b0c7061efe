from datetime import datetime
from uuid import UUID

import msgspec

from shared.ids import AccountId, UserId


class StoredAuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's recorded request. ``status`` is None while the request is in progress, and remains None
    if the process stopped before the request ended.
    """

    id: UUID
    at: datetime
    operator_id: UserId
    operation: str
    method: str
    path: str
    account_id: AccountId | None
    request_id: str
    body_sha256: str | None
    reason: str | None
    status: int | None
    code: str | None
    ended_at: datetime | None


class AuditLogFilter(msgspec.Struct, frozen=True, kw_only=True):
    operator_id: UserId | None = None
    operation: str | None = None
    account_id: AccountId | None = None
