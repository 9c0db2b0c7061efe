"""Route policies: the permission a route requires and the rate limit it counts against.

A controller or handler declares its policy in ``opt``; ``core.api.route_policy`` rejects a route without one
at start-up.
"""

from typing import Any

from shared.permissions import Permission

RoutePolicy = dict[str, Any]

PUBLIC: RoutePolicy = {"access": "public"}
SIGNED_IN: RoutePolicy = {"access": "signed_in"}  # every user and API key, regardless of account
USERS_ONLY: RoutePolicy = {"access": "users_only"}  # no API keys
OPERATORS_ONLY: RoutePolicy = {"access": "operators_only"}
# For operator routes that read no tenant's data; AuditRecorder does not record these reads.
SHOWS_NO_TENANT: RoutePolicy = {"shows_no_tenant": True}


def needs(permission: Permission) -> RoutePolicy:
    """Require the permission in the addressed account, from the caller's role or the API key's scopes."""
    return {"access": permission}


def counts_as(route_class: str) -> RoutePolicy:
    """Set the rate limit class. The default is ``read`` for GET and ``write`` for other methods."""
    return {"route_class": route_class}


UNCOUNTED = counts_as("")  # no limit applies
