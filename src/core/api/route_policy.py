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
TOLD: dict[str, str] = {
    PUBLIC["access"]: "Open to everybody, without a token.",
    SIGNED_IN["access"]: "Open to every user and API key.",
    USERS_ONLY["access"]: "Open to users, not to API keys.",
    OPERATORS_ONLY["access"]: "Open to operators of the service.",
}


class RoutePolicyMissing(RuntimeError):
    """A route without a policy might be open to every caller, so the application does not start."""

    def __init__(self, routes: list[str]) -> None:
        super().__init__(routes)
        self.routes = routes

    def __str__(self) -> str:
        return f"Who may call these? Mark them, see shared.http.route_policy: {', '.join(self.routes)}"


def require_route_policies(litestar: Litestar) -> None:
    """Raises RoutePolicyMissing. Litestar's own OPTIONS handlers need no policy: the pipeline requires a
    token.
    """
    wrong = [route.path for route in litestar.routes if not isinstance(route, HTTPRoute)]
    for path, handler in _handlers(litestar):
        mark = handler.opt.get("access")
        if handler.http_methods == {"OPTIONS"} and mark is None:
            continue
        if not isinstance(mark, str) or not (mark in TOLD or is_permission(mark)):
            wrong.append(f"{' '.join(sorted(handler.http_methods))} {path} ({mark!r})")
    if wrong:
        raise RoutePolicyMissing(sorted(wrong))


def document_marks(litestar: Litestar) -> None:
    """Adds the policy to each operation. The OpenAPI document itself is generated on its first use."""
    for _, handler in _handlers(litestar):
        handler.operation_class = _guarded_by(handler.opt.get("access"))


@cache
def _guarded_by(mark: str | None) -> type[Operation]:
    @dataclass
    class Guarded(Operation):
        access: str | None = field(default=mark, metadata={"alias": ACCESS})

    return Guarded


def _handlers(litestar: Litestar) -> Iterator[tuple[str, HTTPRouteHandler]]:
    for route in litestar.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                yield route.path, handler


def told(access: str) -> str:
    """Describes a policy as a sentence."""
    return TOLD.get(access) or f"Needs `{access}`."


def roles_table() -> str:
    """The permissions of each role as a Markdown table, from the table that authorization uses."""
    head = ["Permission", *ROLES, "API key"]
    lines = [head, ["---"] * len(head)]
    for permission, roles in ALLOWED.items():
        allowed = ["yes" if role in roles else "-" for role in ROLES]
        lines.append([f"`{permission}`", *allowed, "by scope" if permission in get_args(Scope) else "-"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
