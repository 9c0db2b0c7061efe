from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg, FromPath

from features.credits.application.adjustments import Adjustments
from features.credits.controllers.administration import ANSWERS, MovementResponse, RequestBody, movement_out
from shared.caller import Caller
from shared.http.route_policy import OPERATORS_ONLY
from shared.ids import AccountId

# At least one character that is not white space.
WRITTEN = r"^[^\x00]*[^\x00\s][^\x00]*$"
CREDITS_TEXT = "More than 0 to give, less than 0 to take away."


class AdjustmentRequest(RequestBody, frozen=True, kw_only=True):
    credits: Annotated[
        int,
        msgspec.Meta(
            ge=-1_000_000_000_000,
            le=1_000_000_000_000,
            description=CREDITS_TEXT,
            extra_json_schema={"description": CREDITS_TEXT, "extra": {"schema_not": {"const": 0}}},
        ),
    ]
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=500, pattern=WRITTEN)]


AdjustmentBody = Annotated[
    AdjustmentRequest,
    BodyKwarg(
        examples=[
            Example(
                value={"reference": "ticket:4713", "credits": -3, "reason": "Granted twice by our mistake"}
            )
        ]
    ),
]


class AdjustmentsController(Controller):
    path = "/v1/admin/accounts/{account_id:uuid}/credits/adjustments"
    tags = ("Administration",)
    opt = OPERATORS_ONLY

    @post("/", operation_id="adjustCredits", summary="Adjust", status_code=200, responses=ANSWERS)
    async def adjust(
        self,
        request: Request[Caller, Any, Any],
        account_id: FromPath[UUID],
        data: AdjustmentBody,
        adjustments: NamedDependency[Adjustments],
    ) -> MovementResponse:
        """Correct an account's credits, and say why. What is given does not expire; what is taken away is
        taken at once, and cannot be more than there is.
        """
        movement = await adjustments.adjust(
            AccountId(account_id), data.credits, reference=data.reference, reason=data.reason
        )
        return movement_out("adjust", request.user, account_id, movement)
