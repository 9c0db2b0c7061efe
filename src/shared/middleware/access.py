"""Marks on routes: who may call them, and what a call counts as. A route without a mark is closed.

A controller or handler carries them in ``opt``; ``core.doors`` refuses to start with an unmarked route.
"""

from typing import Any

from shared.permissions import Permission

Marks = dict[str, Any]

PUBLIC: Marks = {"access": "public"}
SIGNED_IN: Marks = {"access": "signed_in"}  # every user and key, whatever their account
USERS_ONLY: Marks = {"access": "users_only"}  # people, not keys
OPERATORS_ONLY: Marks = {"access": "operators_only"}
# Of a route for operators that reads, and reads nothing of any tenant: such reading is not written down.
SHOWS_NO_TENANT: Marks = {"shows_no_tenant": True}


def needs(permission: Permission) -> Marks:
    """Open to those whose role, or whose key's scopes, include the permission in the account meant."""
    return {"access": permission}


def counts_as(route_class: str) -> Marks:
    """Which rate limit applies. Without this mark GET counts as ``read`` and the rest as ``write``."""
    return {"route_class": route_class}


UNCOUNTED = counts_as("")  # no limit applies
