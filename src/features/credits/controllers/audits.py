from uuid import UUID

import msgspec
from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example

from features.credits.application.maintenance import CreditMaintenance
from shared.http.route_policy import OPERATORS_ONLY


class FindingResponse(msgspec.Struct, frozen=True, kw_only=True):
    account_id: UUID
    finding: str
    expected: int
    found: int


class AuditResponse(msgspec.Struct, frozen=True, kw_only=True):
    ok: bool
    findings: list[FindingResponse]


class AuditsController(Controller):
    path = "/v1/admin/audits"
    tags = ("Administration",)
    opt = OPERATORS_ONLY

    @post(
        "/",
        operation_id="auditLedger",
        summary="Audit the books",
        status_code=200,
        responses={
            200: ResponseSpec(
                AuditResponse,
                description="What was found",
                examples=[Example(value={"ok": True, "findings": []})],
            )
        },
    )
    async def audit(self, upkeep: NamedDependency[CreditMaintenance]) -> AuditResponse:
        """Compare balances, entries, lots and holds of every account. No findings is the only good answer."""
        findings = await upkeep.audit()
        return AuditResponse(
            ok=not findings,
            findings=[FindingResponse(**msgspec.structs.asdict(finding)) for finding in findings],
        )
