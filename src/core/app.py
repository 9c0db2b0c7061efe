"""HTTP application: controllers, dependencies, middleware and OpenAPI document."""

from typing import Any

from litestar import Litestar, Response, Router
from litestar.di import Provide
from litestar.exceptions import HTTPException, NotFoundException
from litestar.middleware import DefineMiddleware
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ASGIApp

from core.api.docs_page import CONTENT_SECURITY_POLICY, DocumentationPage
from core.api.health import VERSION, HealthController
from core.api.openapi import complete
from core.api.route_policy import document_marks, require_route_policies, roles_table
from core.api.strict_schemas import StrictStructs
from core.progress.run_poll_middleware import RunPollMiddleware
from core.wiring.application import Application
from features.analysis.controllers.analyses import AnalysesController
from features.analysis.controllers.anonymous import AnonymousController
from features.analysis.controllers.bulk import BulkController
from features.auth.controllers.accounts import AccountsController
from features.auth.controllers.api_keys import ApiKeysController
from features.auth.controllers.identity import IdentityController
from features.auth.controllers.invitations import InvitationsController
from features.auth.controllers.members import MembersController
from features.billing.controllers.checkouts import CheckoutsController
from features.billing.controllers.stripe_events import InboxController
from features.billing.controllers.stripe_webhook import PATH as STRIPE_WEBHOOK_PATH
from features.billing.controllers.stripe_webhook import StripeWebhookController
from features.billing.controllers.subscriptions import SubscriptionsController
from features.business.controllers.profiles import BusinessProfilesController
from features.costs.controllers.reports import CostReportsController
from features.costs.controllers.runs import RunCostsController
from features.credits.controllers.adjustments import AdjustmentsController
from features.credits.controllers.administration import CreditsAdministrationController
from features.credits.controllers.audits import AuditsController
from features.credits.controllers.credits import CreditsController
from features.leads.controllers.leads import LeadsController
from features.operations.controllers.audit_log import AuditLogController
from features.operations.controllers.cron import CronController
from features.runs.controllers.refund_policy import RefundPolicyController
from features.runs.controllers.runs import RunsController
from features.webhooks.controllers.deliveries import DeliveriesController, EndpointDeliveriesController
from features.webhooks.controllers.endpoints import EndpointsController
from features.webhooks.controllers.secrets import SecretsController
from shared.errors import DomainError
from shared.http.problems import broken, refused, refused_by_framework
from shared.http.route_policy import PUBLIC
from shared.http.strict_body import StrictRequest
from shared.middleware.http_boundary import HttpBoundary
from shared.middleware.rate_limits import FailureRateLimit
from shared.middleware.request_body import BODIES_BYTES_MAX, Limits
from shared.middleware.request_pipeline import RequestPipeline

CONTROLLERS = (
    HealthController,
    IdentityController,
    AccountsController,
    MembersController,
    InvitationsController,
    ApiKeysController,
    BusinessProfilesController,
    AnalysesController,
    BulkController,
    AnonymousController,
    LeadsController,
    CreditsController,
    CreditsAdministrationController,
    CheckoutsController,
    SubscriptionsController,
    AdjustmentsController,
    AuditsController,
    CronController,
    AuditLogController,
    CostReportsController,
    RunCostsController,
    RunsController,
    RefundPolicyController,
    StripeWebhookController,
    InboxController,
    EndpointsController,
    SecretsController,
    DeliveriesController,
    EndpointDeliveriesController,
)
DESCRIPTION = f"""\
Send `Authorization: Bearer <access token or API key>` with every request. If you belong to several
accounts, name one in the `Oslira-Account` header. Refusals are problem documents (RFC 9457) with a stable
`code` and the `request_id` to quote. Lists come in pages: follow `next_cursor` until it is null.

What you may do in an account depends on your role there. An API key has scopes instead of a role.

{roles_table()}
"""


def given(value: object) -> Provide:
    return Provide(lambda: value, sync_to_thread=False, use_cache=True)


def create_app(application: Application) -> ASGIApp:
    """Raises RoutePolicyMissing if a route has no policy."""
    settings = application.settings
    counted_refusals = FailureRateLimit(application.rate_limits, settings.proxy_hops)
    litestar = Litestar(
        route_handlers=CONTROLLERS,
        dependencies={name: given(part) for name, part in _parts(application, counted_refusals).items()},
        middleware=[
            DefineMiddleware(
                RequestPipeline,
                authenticator=application.authenticator,
                rate_limits=application.rate_limits,
                idempotency=application.idempotency,
                audit=application.operations.audit,
                proxy_hops=settings.proxy_hops,
            )
        ],
        exception_handlers={
            DomainError: refused,
            HTTPException: refused_by_framework,
            Exception: broken,
        },
        after_exception=[counted_refusals.count_unknown_route],
        openapi_config=_openapi(),
        plugins=[StrictStructs()],
        logging_config=None,
        request_class=StrictRequest,
        request_max_body_size=settings.body_bytes_max,
    )
    require_route_policies(litestar)
    document_marks(litestar)
    complete(litestar.openapi_schema, litestar.routes)
    return HttpBoundary(
        RunPollMiddleware(
            litestar, application.runs.live, application.authenticator, application.poll_limits
        ),
        Limits(
            body_bytes_max=settings.body_bytes_max,
            body_deadline_s=settings.client_deadline_s,
            bodies_bytes_max=max(BODIES_BYTES_MAX, 2 * settings.body_bytes_max),
        ),
        https_only=not settings.is_local,
        record=application.record_request,
        cors_origins=settings.cors_origins,
        raw_paths=frozenset({STRIPE_WEBHOOK_PATH}),
    )


def _parts(application: Application, counted_refusals: FailureRateLimit) -> dict[str, object]:
    """Dependencies by the parameter names of the handlers."""
    return {
        "health": application.health,
        "me": application.me,
        "accounts": application.accounts,
        "members": application.members,
        "invitations": application.invitations,
        "api_keys": application.api_keys,
        "balances": application.balances,
        "statements": application.statements,
        "holds": application.holds,
        "grants": application.grants,
        "adjustments": application.adjustments,
        "upkeep": application.upkeep,
        "cron": application.operations.cron,
        "acts": application.operations.acts,
        "profiles": application.business_profiles,
        "analysis_starts": application.beginnings.starts,
        "quotes": application.beginnings.quotes,
        "bulk_starts": application.beginnings.bulk,
        "anonymous_analyses": application.beginnings.anonymous,
        "leads": application.leads,
        "analyses": application.analyses,
        "catalog": application.billing.catalog,
        "checkouts": application.billing.checkouts,
        "subscriptions": application.billing.subscriptions,
        "changes": application.billing.changes,
        "invoices": application.billing.invoices,
        "cost_reports": application.cost_reports,
        "run_costs": application.run_costs,
        "run_views": application.runs.views,
        "run_streams": application.runs.streams,
        "cancellations": application.runs.cancellations,
        "retries": application.runs.retries,
        "receiver": application.webhooks.receiver,
        "inbox": application.webhooks.inbox,
        "counted_refusals": counted_refusals,
        "authenticator": application.authenticator,
        # Counted in this process, because readiness must not depend on the shared rate limit store.
        "readiness_limits": FailureRateLimit(application.poll_limits, application.settings.proxy_hops),
        "webhook_endpoints": application.notices.endpoints,
        "webhook_deliveries": application.notices.deliveries,
    }


def _openapi() -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Oslira",
        version=VERSION,
        description=DESCRIPTION,
        use_handler_docstrings=True,
        security=[{"token": []}],
        components=Components(
            security_schemes={"token": SecurityScheme(type="http", scheme="bearer", bearer_format="JWT")}
        ),
        render_plugins=[DocumentationPage(path="/"), JsonRenderPlugin(path="/openapi.json")],
        openapi_router=Router(
            path="/schema",
            route_handlers=[],
            opt=PUBLIC,
            include_in_schema=False,
            after_request=_not_found_as_a_problem,
            response_headers={"content-security-policy": CONTENT_SECURITY_POLICY},
        ),
    )


def _not_found_as_a_problem(response: Response[Any]) -> Response[Any]:
    """Litestar answers an unknown path below /schema with its own page instead of a problem document."""
    if response.status_code == NotFoundException.status_code:
        raise NotFoundException
    return response
