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

from core.api import documentation_page
from core.api.health import VERSION, HealthController
from core.api.openapi import complete, describe_handlers
from core.api.route_policy import require_route_policies, roles_table
from core.api.strict_schemas import StrictStructs
from core.progress.run_poll_middleware import RunPollMiddleware
from core.wiring.application import Application
from features.analysis.controllers.analyses import AnalysesController
from features.analysis.controllers.anonymous import AnonymousController
from features.analysis.controllers.bulk import BulkController
from features.auth.controllers.accounts import AccountsController, IdentityController
from features.auth.controllers.api_keys import ApiKeysController
from features.auth.controllers.members import InvitationsController, MembersController
from features.billing.controllers.checkouts import CheckoutsController
from features.billing.controllers.stripe_events import PATH as STRIPE_WEBHOOK_PATH
from features.billing.controllers.stripe_events import InboxController, StripeWebhookController
from features.billing.controllers.subscriptions import SubscriptionsController
from features.business.controllers.profiles import BusinessProfilesController
from features.costs.controllers.reports import CostReportsController, RunCostsController
from features.credits.controllers.administration import CreditsAdministrationController
from features.credits.controllers.credits import CreditsController
from features.leads.controllers.leads import LeadsController
from features.operations.controllers.audit_log import AuditLogController
from features.operations.controllers.cron import CronController
from features.runs.controllers.runs import RefundPolicyController, RunsController
from features.webhooks.controllers.deliveries import DeliveriesController
from features.webhooks.controllers.endpoints import EndpointsController
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
    CronController,
    AuditLogController,
    CostReportsController,
    RunCostsController,
    RunsController,
    RefundPolicyController,
    StripeWebhookController,
    InboxController,
    EndpointsController,
    DeliveriesController,
)
DESCRIPTION = f"""\
Send `Authorization: Bearer <access token or API key>` with every request. If you are a member of several
accounts, select one with the `Oslira-Account` header. Errors are problem documents (RFC 9457) with a stable
`code` and a `request_id`. Lists have pages: follow `next_cursor` until it is null.

Your permissions in an account depend on your role in it. An API key has scopes instead of a role.

{roles_table()}
"""


def given(value: object) -> Provide:
    return Provide(lambda: value, sync_to_thread=False, use_cache=True)


def create_app(application: Application) -> ASGIApp:
    """Raises RoutePolicyMissing if a route has no policy."""
    settings = application.settings
    counted_refusals = FailureRateLimit(application.rate_limits, settings.proxy_hops)
    litestar = Litestar(
        route_handlers=[*CONTROLLERS, documentation_page.redirect_to_documentation],
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
    describe_handlers(litestar)
    complete(litestar)
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
        "grants": application.grants,
        "adjustments": application.adjustments,
        "upkeep": application.upkeep,
        "cron": application.operations.cron,
        "audit_log": application.operations.audit_log,
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
        render_plugins=[*documentation_page.FILES, JsonRenderPlugin(path="/openapi.json")],
        openapi_router=Router(
            path=documentation_page.PATH,
            route_handlers=[],
            opt=PUBLIC,
            include_in_schema=False,
            after_request=_not_found_as_a_problem,
            response_headers={"content-security-policy": documentation_page.CONTENT_SECURITY_POLICY},
        ),
    )


def _not_found_as_a_problem(response: Response[Any]) -> Response[Any]:
    """Litestar answers an unknown path below /schema with its own page instead of a problem document."""
    if response.status_code == NotFoundException.status_code:
        raise NotFoundException
    return response
