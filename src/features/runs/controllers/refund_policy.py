from litestar import Controller, get
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example

from features.runs.controllers.schemas import POLICY_EXAMPLE, RefundPoliciesResponse
from features.runs.domain.refunds import REFUND_POLICIES, REFUND_POLICY_VERSION
from shared.http.route_policy import PUBLIC

POLICIES = RefundPoliciesResponse(
    current_version=REFUND_POLICY_VERSION, policies=list(REFUND_POLICIES.values())
)


class RefundPolicyController(Controller):
    path = "/v1/refund-policy"
    tags = ("Runs",)
    opt = PUBLIC
    security = ({},)

    @get(
        "/",
        operation_id="getRefundPolicy",
        summary="Refund policy",
        sync_to_thread=False,
        responses={
            200: ResponseSpec(
                RefundPoliciesResponse, description="Every version", examples=[Example(value=POLICY_EXAMPLE)]
            )
        },
    )
    def policies(self) -> RefundPoliciesResponse:
        """What a run costs, by how it ended: which share of the credits that were set aside is charged. The
        share is rounded down; if a rule has a `credits_charged_min`, at least so many credits are charged. A
        run is settled by the version that was current when it was started.
        """
        return POLICIES
