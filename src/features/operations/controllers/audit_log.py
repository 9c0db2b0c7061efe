from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import QueryParameter

from features.operations.application.audit_log import AuditEntries
from features.operations.domain.audit_log import AuditLogFilter, StoredAuditEntry
from shared.http.parameters import Cursor, Limit
from shared.http.route_policy import OPERATORS_ONLY
from shared.ids import AccountId, UserId

OPERATION_LENGTH_MAX = 100
WITHOUT_NUL = r"^[^\x00]*$"  # PostgreSQL text cannot contain NUL

OperatorQuery = Annotated[UUID | None, QueryParameter(name="operator_id", description="Only this one's.")]
AccountQuery = Annotated[UUID | None, QueryParameter(name="account_id", description="Only about this one.")]
OperationQuery = Annotated[
    str | None,
    QueryParameter(
        min_length=1,
        max_length=OPERATION_LENGTH_MAX,
        pattern=WITHOUT_NUL,
        description="Only these, as the document names them.",
    ),
]


class ActResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    at: datetime
    operator_id: UUID
    operation: str
    method: str
    path: str
    account_id: UUID | None
    request_id: str
    body_sha256: str | None
    reason: str | None
    status: int | None
    code: str | None
    ended_at: datetime | None


class ActsResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[ActResponse]
    next_cursor: str | None


ACT_EXAMPLE = {
    "id": "5b1c7c0e-8a1e-4d8e-9f39-0a6d5c1e2b11",
    "at": "2026-11-01T09:12:33.120Z",
    "operator_id": "0b8f3a52-6c1d-4b8e-a4e5-7d1f0c9b2a34",
    "operation": "adjustCredits",
    "method": "POST",
    "path": "/v1/admin/accounts/7c9e6679-7425-40de-944b-e07fc1f90ae7/credits/adjustments",
    "account_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "request_id": "f2d9c8e14b3a4d0c",
    "body_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "reason": "Charged twice by our mistake",
    "status": 200,
    "code": None,
    "ended_at": "2026-11-01T09:12:33.131Z",
}


class AuditLogController(Controller):
    path = "/v1/admin/acts"
    tags = ("Administration",)
    opt = OPERATORS_ONLY

    @get(
        "/",
        operation_id="listActs",
        summary="What operators did",
        responses={
            200: ResponseSpec(
                ActsResponse,
                description="A page",
                examples=[Example(value={"items": [ACT_EXAMPLE], "next_cursor": None})],
            )
        },
    )
    async def acts(
        self,
        acts: NamedDependency[AuditEntries],
        operator: OperatorQuery = None,
        account: AccountQuery = None,
        operation: OperationQuery = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> ActsResponse:
        """Every request to a route for operators, newest first, this one included. It is written down before
        it is carried out: a `status` of null is one that is under way, or whose end nobody saw.
        """
        only = AuditLogFilter(
            operator_id=UserId(operator) if operator else None,
            operation=operation,
            account_id=AccountId(account) if account else None,
        )
        page = await acts.page(only, cursor=cursor, limit=limit)
        return ActsResponse(items=[_act_out(act) for act in page.items], next_cursor=page.next_cursor)


def _act_out(act: StoredAuditEntry) -> ActResponse:
    return ActResponse(**msgspec.structs.asdict(act))
