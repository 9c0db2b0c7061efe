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
from features.auth.application.authentication import Authenticator
from features.runs.application.live_runs import LiveRuns
from shared.errors import DomainError
from shared.http.problems import broken, refused, refused_by_framework
from shared.http.route_policy import PUBLIC
from shared.http.strict_body import StrictRequest
from shared.middleware.audit_log import AuditRecorder
from shared.middleware.http_boundary import HttpBoundary
from shared.middleware.rate_limits import FailureRateLimit
from shared.middleware.request_body import BODIES_BYTES_MAX, Limits
from shared.middleware.request_pipeline import RequestPipeline

DESCRIPTION = f"""\
Send `Authorization: Bearer <access token or API key>` with every request. If you are a member of several
accounts, select one with the `Oslira-Account` header. Errors are problem documents (RFC 9457) with a stable
`code` and a `request_id`. Lists have pages: follow `next_cursor` until it is null.

Your permissions in an account depend on your role in it. An API key has scopes instead of a role.

{roles_table()}
"""


def provide(value: object) -> Provide:
    return Provide(lambda: value, sync_to_thread=False, use_cache=True)


def create_app(application: Application) -> ASGIApp:
    """Raises RoutePolicyMissing if a route has no policy."""
    litestar = _litestar(application)
    require_route_policies(litestar)
    describe_handlers(litestar)
    complete(litestar)
    settings, slices = application.settings, application.resources.slices
    return HttpBoundary(
        RunPollMiddleware(
            litestar,
            application.get(LiveRuns),
            application.get(Authenticator),
            application.poll_limits,
        ),
        Limits(
            body_bytes_max=settings.body_bytes_max,
            body_deadline_s=settings.client_deadline_s,
            bodies_bytes_max=max(BODIES_BYTES_MAX, 2 * settings.body_bytes_max),
        ),
        https_only=not settings.is_local,
        record=application.record_request,
        cors_origins=settings.cors_origins,
        raw_paths=frozenset(path for slice_ in slices for path in slice_.raw_paths),
    )


def _litestar(application: Application) -> Litestar:
    settings, slices = application.settings, application.resources.slices
    failure_limit = FailureRateLimit(application.rate_limits, settings.proxy_hops)
    dependencies = {
        **application.dependencies,
        "health": application.health,
        "failure_limit": failure_limit,
        # Counted in this process, because readiness must not depend on the shared rate limit store.
        "readiness_limits": FailureRateLimit(application.poll_limits, settings.proxy_hops),
    }
    return Litestar(
        route_handlers=[
            HealthController,
            documentation_page.redirect_to_documentation,
            *(controller for slice_ in slices for controller in slice_.controllers),
        ],
        dependencies={name: provide(value) for name, value in dependencies.items()},
        middleware=[_pipeline(application)],
        exception_handlers={
            DomainError: refused,
            HTTPException: refused_by_framework,
            Exception: broken,
        },
        after_exception=[failure_limit.count_unknown_route],
        openapi_config=_openapi(),
        plugins=[StrictStructs()],
        logging_config=None,
        request_class=StrictRequest,
        request_max_body_size=settings.body_bytes_max,
    )


def _pipeline(application: Application) -> DefineMiddleware:
    return DefineMiddleware(
        RequestPipeline,
        authenticator=application.get(Authenticator),
        rate_limits=application.rate_limits,
        idempotency=application.idempotency,
        audit=application.get(AuditRecorder),
        proxy_hops=application.settings.proxy_hops,
    )


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
