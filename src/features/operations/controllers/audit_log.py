"""Operators' route for the audit log."""

from typing import Annotated
from uuid import UUID

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from features.operations.application.audit_log import AuditEntries
from features.operations.domain.audit_log import AuditLogFilter, StoredAuditEntry
from shared.http.parameters import Cursor, Limit
from shared.http.route_policy import OPERATORS_ONLY
from shared.ids import AccountId, UserId
from shared.pagination import Page

OPERATION_LENGTH_MAX = 100
WITHOUT_NUL = r"^[^\x00]*$"  # PostgreSQL text cannot contain NUL

OperatorQuery = Annotated[
    UUID | None, QueryParameter(name="operator_id", description="Only requests of this operator.")
]
AccountQuery = Annotated[
    UUID | None, QueryParameter(name="account_id", description="Only requests about this account.")
]
OperationQuery = Annotated[
    str | None,
    QueryParameter(
        min_length=1,
        max_length=OPERATION_LENGTH_MAX,
        pattern=WITHOUT_NUL,
        description="Only requests with this operation id.",
    ),
]


class AuditLogController(Controller):
    path = "/v1/admin/audit-log"
    tags = ("Administration",)
    opt = OPERATORS_ONLY

    @get("/")
    async def list_audit_log(
        self,
        audit_log: NamedDependency[AuditEntries],
        operator: OperatorQuery = None,
        account: AccountQuery = None,
        operation: OperationQuery = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[StoredAuditEntry]:
        """List the requests of operators, newest first, including this one.

        A request is recorded before it is processed: `status` is null while it is in progress, and when its
        result could not be recorded.
        """
        entry_filter = AuditLogFilter(
            operator_id=UserId(operator) if operator else None,
            operation=operation,
            account_id=AccountId(account) if account else None,
        )
        return await audit_log.page(entry_filter, cursor=cursor, limit=limit)
