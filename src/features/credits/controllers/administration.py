"""Operators' routes for credits: grants, adjustments and the audit of the ledger."""

from typing import Annotated
from uuid import UUID

import msgspec
import structlog
from litestar import Controller, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from features.credits.application.adjustments import Adjustments
from features.credits.application.grants import Grants
from features.credits.application.maintenance import CreditMaintenance
from features.credits.domain.ledger import Finding, LedgerChange
from shared.caller import Caller
from shared.http.parameters import AuthenticatedRequest, RequestBody, TimeField, text_field
from shared.http.responses import problems
from shared.http.route_policy import OPERATORS_ONLY
from shared.ids import AccountId
from shared.timestamps import as_utc

log: structlog.stdlib.BoundLogger = structlog.get_logger("credits")

CREDITS_MAX = 1_000_000_000_000
WITHOUT_NUL = r"^[^\x00]*$"  # PostgreSQL cannot store NUL
NOT_BLANK = r"^[^\x00]*[^\x00\s][^\x00]*$"
# Python's patterns have no character classes, so check_reference applies this pattern.
PRINTABLE = r"^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$"
DELTA_TEXT = "Positive to grant, negative to remove."

Credits = Annotated[int, msgspec.Meta(ge=1, le=CREDITS_MAX, examples=[5])]
CreditsDelta = Annotated[
    int,
    msgspec.Meta(
        ge=-CREDITS_MAX,
        le=CREDITS_MAX,
        description=DELTA_TEXT,
        extra_json_schema={"description": DELTA_TEXT, "extra": {"schema_not": {"const": 0}}},
    ),
]
Reference = Annotated[
    str, text_field(200, PRINTABLE, "Identifies the change; repeat it to retry the request.")
]
TransactionType = Annotated[str, msgspec.Meta(pattern="^[a-z][a-z_]{0,39}$", examples=["admin_grant"])]
Description = Annotated[str, msgspec.Meta(max_length=500, pattern=WITHOUT_NUL)]
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=500, pattern=NOT_BLANK)]


class GrantRequest(RequestBody, frozen=True, kw_only=True):
    reference: Reference
    credits: Credits
    transaction_type: TransactionType = "admin_grant"
    expires_at: TimeField | None = None
    description: Description | None = None


class AdjustmentRequest(RequestBody, frozen=True, kw_only=True):
    reference: Reference
    credits: CreditsDelta
    reason: Reason


class AuditResponse(msgspec.Struct, frozen=True, kw_only=True):
    ok: bool
    findings: list[Finding]


class CreditsAdministrationController(Controller):
    path = "/v1/admin"
    tags = ("Administration",)
    opt = OPERATORS_ONLY

    @post("/accounts/{account_id:uuid}/credits/grants", status_code=200, responses=problems(402))
    async def grant_credits(
        self,
        request: AuthenticatedRequest,
        account_id: FromPath[UUID],
        data: JSONBody[GrantRequest],
        grants: NamedDependency[Grants],
    ) -> LedgerChange:
        """Grant credits to an account, until `expires_at` or without expiry.

        A second request with the same reference changes nothing and has `repeated` in its response.
        """
        change = await grants.grant(
            AccountId(account_id),
            data.credits,
            reference=data.reference,
            transaction_type=data.transaction_type,
            expires_at=as_utc(data.expires_at),
            description=data.description,
        )
        return _logged("grant", request.user, account_id, change)

    @post("/accounts/{account_id:uuid}/credits/adjustments", status_code=200, responses=problems(402))
    async def adjust_credits(
        self,
        request: AuthenticatedRequest,
        account_id: FromPath[UUID],
        data: JSONBody[AdjustmentRequest],
        adjustments: NamedDependency[Adjustments],
    ) -> LedgerChange:
        """Correct the credits of an account, with a reason.

        Granted credits do not expire. No more credits can be removed than are available. A second request
        with the same reference changes nothing and has `repeated` in its response.
        """
        change = await adjustments.adjust(
            AccountId(account_id), data.credits, reference=data.reference, reason=data.reason
        )
        return _logged("adjust", request.user, account_id, change)

    @post("/audits", status_code=200)
    async def audit_ledger(self, credit_maintenance: NamedDependency[CreditMaintenance]) -> AuditResponse:
        """Compare the balances, entries, lots and holds of all accounts.

        A consistent ledger has no findings.
        """
        findings = await credit_maintenance.audit()
        return AuditResponse(ok=not findings, findings=findings)


def _logged(verb: str, caller: Caller, account_id: UUID, change: LedgerChange) -> LedgerChange:
    log.info(
        "credits_changed_by_operator",
        verb=verb,
        operator=str(caller.user_id),
        account=str(account_id),
        credits=change.credits_moved,
        repeated=change.repeated,
    )
    return change
