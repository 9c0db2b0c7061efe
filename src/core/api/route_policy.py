"""Who may call what: checked before anything is served, and told in the documentation."""

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

ACCESS = "x-access"  # an operation's mark, in the document
TOLD: dict[str, str] = {
    PUBLIC["access"]: "Open to everybody, without a token.",
    SIGNED_IN["access"]: "Open to every user and API key.",
    USERS_ONLY["access"]: "Open to users, not to API keys.",
    OPERATORS_ONLY["access"]: "Open to operators of the service.",
}


class RoutePolicyMissing(RuntimeError):
    """A mistake of ours that would leave a door open, so nothing is served."""

    def __init__(self, routes: list[str]) -> None:
        super().__init__(routes)
        self.routes = routes

    def __str__(self) -> str:
        return f"Who may call these? Mark them, see shared.http.route_policy: {', '.join(self.routes)}"


def require_route_policies(litestar: Litestar) -> None:
    """Raises RouteUnmarked. Litestar's own OPTIONS handlers need no mark: the gate asks for a token."""
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
    """Every operation of the document, which is made when somebody asks, says what guards it."""
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
    """A mark in words."""
    return TOLD.get(access) or f"Needs `{access}`."


def roles_table() -> str:
    """What each role may do, as the guard reads it, in Markdown."""
    head = ["Permission", *ROLES, "API key"]
    lines = [head, ["---"] * len(head)]
    for permission, roles in ALLOWED.items():
        allowed = ["yes" if role in roles else "-" for role in ROLES]
        lines.append([f"`{permission}`", *allowed, "by scope" if permission in get_args(Scope) else "-"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
