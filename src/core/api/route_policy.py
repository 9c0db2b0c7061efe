"""Route policies: required for every route at start-up, and documented in the OpenAPI document."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import get_args

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.spec import Operation
from litestar.routes import HTTPRoute

from features.auth.domain.roles import ALLOWED, ROLES, Scope, is_permission
from shared.http.route_policy import OPERATORS_ONLY, PUBLIC, SIGNED_IN, USERS_ONLY

ACCESS = "x-access"  # the operation's field in the OpenAPI document
TEXTS: dict[str, str] = {
    PUBLIC["access"]: "Public: no token is required.",
    SIGNED_IN["access"]: "Requires the token of a user or an API key.",
    USERS_ONLY["access"]: "Requires the token of a user; API keys are rejected.",
    OPERATORS_ONLY["access"]: "Requires the token of an operator.",
}


class RoutePolicyMissing(RuntimeError):
    """A route without a policy might be open to every caller, so the application does not start."""

    def __init__(self, routes: list[str]) -> None:
        super().__init__(routes)
        self.routes = routes

    def __str__(self) -> str:
        return f"Routes without a policy (see shared.http.route_policy): {', '.join(self.routes)}"


def require_route_policies(litestar: Litestar) -> None:
    """Raises RoutePolicyMissing. Litestar's own OPTIONS handlers need no policy: the pipeline requires a
    token.
    """
    wrong = [route.path for route in litestar.routes if not isinstance(route, HTTPRoute)]
    for path, handler in _handlers(litestar):
        policy = handler.opt.get("access")
        if handler.http_methods == {"OPTIONS"} and policy is None:
            continue
        if not isinstance(policy, str) or not (policy in TEXTS or is_permission(policy)):
            wrong.append(f"{' '.join(sorted(handler.http_methods))} {path} ({policy!r})")
    if wrong:
        raise RoutePolicyMissing(sorted(wrong))


def document_route_policy(handler: HTTPRouteHandler) -> None:
    """Add the policy to the handler's operation in the OpenAPI document."""
    handler.operation_class = _operation_class(handler.opt["access"])


@cache
def _operation_class(policy: str) -> type[Operation]:
    @dataclass
    class OperationWithPolicy(Operation):
        access: str | None = field(default=policy, metadata={"alias": ACCESS})

    return OperationWithPolicy


def _handlers(litestar: Litestar) -> Iterator[tuple[str, HTTPRouteHandler]]:
    for route in litestar.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                yield route.path, handler


def route_policy_text(access: str) -> str:
    return TEXTS.get(access) or f"Requires the permission `{access}`."


def roles_table() -> str:
    """The permissions of each role as a Markdown table, from the table that authorization uses."""
    head = ["Permission", *ROLES, "API key"]
    lines = [head, ["---"] * len(head)]
    for permission, roles in ALLOWED.items():
        allowed = ["yes" if role in roles else "-" for role in ROLES]
        lines.append([f"`{permission}`", *allowed, "by scope" if permission in get_args(Scope) else "-"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
