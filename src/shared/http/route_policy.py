"""Route policies: the permission a route requires and the rate limit it counts against.

A controller or handler declares its policy in ``opt``; ``core.api.route_policy`` rejects a route without one
at start-up.
"""

from typing import Any

from shared.permissions import Permission

RoutePolicy = dict[str, Any]

PUBLIC: RoutePolicy = {"access": "public"}
SIGNED_IN: RoutePolicy = {"access": "signed_in"}  # every user and key, whatever their account
USERS_ONLY: RoutePolicy = {"access": "users_only"}  # people, not keys
OPERATORS_ONLY: RoutePolicy = {"access": "operators_only"}
# Of a route for operators that reads, and reads nothing of any tenant: such reading is not written down.
SHOWS_NO_TENANT: RoutePolicy = {"shows_no_tenant": True}


def needs(permission: Permission) -> RoutePolicy:
    """Open to those whose role, or whose key's scopes, include the permission in the account meant."""
    return {"access": permission}


def counts_as(route_class: str) -> RoutePolicy:
    """Which rate limit applies. Without this mark GET counts as ``read`` and the rest as ``write``."""
    return {"route_class": route_class}


UNCOUNTED = counts_as("")  # no limit applies
