"""Permissions of each role, in one table."""

from typing import Literal, TypeGuard, get_args

from shared.permissions import Permission

Role = Literal["owner", "admin", "member", "viewer"]

ROLES: tuple[Role, ...] = get_args(Role)

ALLOWED: dict[Permission, tuple[Role, ...]] = {
    "account:read": ("owner", "admin", "member", "viewer"),
    "account:update": ("owner", "admin"),
    "account:delete": ("owner",),
    "members:read": ("owner", "admin", "member", "viewer"),
    "members:manage": ("owner", "admin"),
    "api_keys:read": ("owner", "admin"),
    "api_keys:manage": ("owner", "admin"),
    "credits:read": ("owner", "admin", "member", "viewer"),
    "business_profiles:read": ("owner", "admin", "member", "viewer"),
    "business_profiles:write": ("owner", "admin", "member"),
    "runs:read": ("owner", "admin", "member", "viewer"),
    "runs:write": ("owner", "admin", "member"),  # start, cancel, retry: operations that spend credits
    "leads:read": ("owner", "admin", "member", "viewer"),
    "leads:write": ("owner", "admin", "member"),
    "billing:read": ("owner", "admin"),
    "billing:manage": ("owner", "admin"),  # operations that spend money
    "webhooks:read": ("owner", "admin"),
    "webhooks:manage": ("owner", "admin"),  # destinations of the account's data
}

# These permissions need no role lookup: row level security checks the membership.
FOR_EVERY_ROLE = frozenset(permission for permission, roles in ALLOWED.items() if roles == ROLES)

# API keys are for programs: they cannot invite, rename, delete or create keys.
Scope = Literal[
    "account:read",
    "credits:read",
    "business_profiles:read",
    "business_profiles:write",
    "runs:read",
    "runs:write",
    "leads:read",
    "leads:write",
    "billing:read",
    "webhooks:read",
    "webhooks:manage",
]


def is_permission(text: str) -> TypeGuard[Permission]:
    return text in ALLOWED
