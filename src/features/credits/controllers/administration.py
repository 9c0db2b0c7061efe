"""HTTP handlers for manual credit operations by operators. Each is idempotent by its reference."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
import structlog
from litestar import Controller, Request, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg, FromPath

from features.credits.application.grants import Grants
from features.credits.application.holds import Holds
from features.credits.domain.ledger import LedgerChange
from shared.caller import Caller
from shared.http.problems import problem_responses
from shared.http.route_policy import OPERATORS_ONLY
from shared.ids import AccountId
from shared.timestamps import as_utc

log: structlog.stdlib.BoundLogger = structlog.get_logger("credits")

WITHOUT_NUL = r"^[^\x00]*$"  # PostgreSQL cannot store NUL
PRINTABLE = r"^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$"
REFERENCE_TEXT = "Names the effect; repeat it to retry."

Credits = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000_000, examples=[5])]
Reference = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=200,
        description=REFERENCE_TEXT,
        examples=["ticket:4711"],
        # Only for the schema: Python's patterns have no character classes, and check_reference has a clear
        # error.
        extra_json_schema={"description": REFERENCE_TEXT, "extra": {"pattern": PRINTABLE}},
    ),
]
TransactionType = Annotated[str, msgspec.Meta(pattern="^[a-z][a-z_]{0,39}$")]
Description = Annotated[str, msgspec.Meta(max_length=500, pattern=WITHOUT_NUL)]


class RequestBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reference: Reference


class GrantRequest(RequestBody, frozen=True, kw_only=True):
    credits: Credits
    transaction_type: TransactionType = "admin_grant"
    expires_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    description: Description | None = None


class HoldRequest(RequestBody, frozen=True, kw_only=True):
    credits: Credits
    transaction_type: TransactionType = "admin_charge"
    description: Description | None = None


class SettlementRequest(RequestBody, frozen=True, kw_only=True):
    credits_spent: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000_000, examples=[3])]


class ReleaseRequest(RequestBody, frozen=True, kw_only=True):
    pass


class RefundRequest(RequestBody, frozen=True, kw_only=True):
    credits: Credits
    hold_reference: Reference
    description: Description | None = None


def _body(example: dict[str, object]) -> BodyKwarg:
    return BodyKwarg(examples=[Example(value=example)])


GrantBody = Annotated[GrantRequest, _body({"reference": "ticket:4711", "credits": 5})]
HoldBody = Annotated[HoldRequest, _body({"reference": "run:5b1c", "credits": 5})]
SettlementBody = Annotated[SettlementRequest, _body({"reference": "run:5b1c", "credits_spent": 3})]
ReleaseBody = Annotated[ReleaseRequest, _body({"reference": "run:5b1c"})]
RefundBody = Annotated[
    RefundRequest, _body({"reference": "ticket:4712", "hold_reference": "run:5b1c", "credits": 3})
]


class MovementResponse(msgspec.Struct, frozen=True, kw_only=True):
    repeated: bool
    credits_moved: int
    credits_available: int
    credits_held: int


MOVEMENT_EXAMPLE = {
    "repeated": False,
    "credits_moved": 5,
    "credits_available": 20,
    "credits_held": 5,
}
ANSWERS = {
    200: ResponseSpec(
        MovementResponse,
        description="Done, now or by an earlier request with the same reference",
        examples=[Example(value=MOVEMENT_EXAMPLE)],
    ),
    **problem_responses(402),
}


def movement_out(verb: str, caller: Caller, account_id: UUID, movement: LedgerChange) -> MovementResponse:
    log.info(
        "operator_moved_credits",
        verb=verb,
        operator=str(caller.user_id),
        account=str(account_id),
        credits=movement.credits_moved,
        repeated=movement.repeated,
    )
    return MovementResponse(
        repeated=movement.repeated,
        credits_moved=movement.credits_moved,
        credits_available=movement.credits_available,
        credits_held=movement.credits_held,
    )


class CreditsAdministrationController(Controller):
    path = "/v1/admin/accounts/{account_id:uuid}/credits"
    tags = ("Administration",)
    opt = OPERATORS_ONLY

    @post("/grants", operation_id="grantCredits", summary="Grant", status_code=200, responses=ANSWERS)
    async def grant(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        data: GrantBody,
        grants: NamedDependency[Grants],
    ) -> MovementResponse:
        """Give an account new credits, until `expires_at` or for good."""
        movement = await grants.grant(
            AccountId(account_id),
            data.credits,
            reference=data.reference,
            transaction_type=data.transaction_type,
            expires_at=as_utc(data.expires_at),
            description=data.description,
        )
        return movement_out("grant", request.user, account_id, movement)

    @post("/holds", operation_id="holdCredits", summary="Hold", status_code=200, responses=ANSWERS)
    async def hold(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        data: HoldBody,
        holds: NamedDependency[Holds],
    ) -> MovementResponse:
        """Set credits aside for work that has not happened yet."""
        movement = await holds.place(
            AccountId(account_id),
            data.credits,
            reference=data.reference,
            transaction_type=data.transaction_type,
            description=data.description,
        )
        return movement_out("hold", request.user, account_id, movement)

    @post(
        "/settlements",
        operation_id="settleCredits",
        summary="Settle",
        status_code=200,
        responses=ANSWERS,
    )
    async def settle(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        data: SettlementBody,
        holds: NamedDependency[Holds],
    ) -> MovementResponse:
        """Spend up to what a hold set aside; the rest becomes available again."""
        movement = await holds.settle(
            AccountId(account_id), reference=data.reference, credits_spent=data.credits_spent
        )
        return movement_out("settle", request.user, account_id, movement)

    @post(
        "/releases",
        operation_id="releaseCredits",
        summary="Release",
        status_code=200,
        responses=ANSWERS,
    )
    async def release(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        data: ReleaseBody,
        holds: NamedDependency[Holds],
    ) -> MovementResponse:
        """Make everything that a hold set aside available again."""
        movement = await holds.release(AccountId(account_id), reference=data.reference)
        return movement_out("release", request.user, account_id, movement)

    @post(
        "/refunds",
        operation_id="refundCredits",
        summary="Refund",
        status_code=200,
        responses=ANSWERS,
    )
    async def refund(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        data: RefundBody,
        holds: NamedDependency[Holds],
    ) -> MovementResponse:
        """Give back credits that were spent, to the lots they came from."""
        movement = await holds.refund(
            AccountId(account_id),
            data.credits,
            hold_reference=data.hold_reference,
            reference=data.reference,
            description=data.description,
        )
        return movement_out("refund", request.user, account_id, movement)
