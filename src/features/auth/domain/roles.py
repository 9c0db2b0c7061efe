"""What each role may do: this table, and nothing beside it."""

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
    "runs:write": ("owner", "admin", "member"),  # start, cancel, retry: what spends credits
    "leads:read": ("owner", "admin", "member", "viewer"),
    "leads:write": ("owner", "admin", "member"),
    "billing:read": ("owner", "admin"),
    "billing:manage": ("owner", "admin"),  # what spends money
    "webhooks:read": ("owner", "admin"),
    "webhooks:manage": ("owner", "admin"),  # where the account's data is sent
}

# What every member may do needs no look at the role: row level security knows who is a member.
FOR_EVERY_ROLE = frozenset(permission for permission, roles in ALLOWED.items() if roles == ROLES)

# A key is for work, not for people: it cannot invite, rename, delete, or make more keys.
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
