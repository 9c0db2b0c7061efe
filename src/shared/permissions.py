"""Permissions that a route can require. The auth slice maps roles to permissions."""

from typing import Literal

Permission = Literal[
    "account:read",
    "account:update",
    "account:delete",
    "members:read",
    "members:manage",
    "api_keys:read",
    "api_keys:manage",
    "credits:read",
    "business_profiles:read",
    "business_profiles:write",
    "runs:read",
    "runs:write",
    "leads:read",
    "leads:write",
    "billing:read",
    "billing:manage",
    "webhooks:read",
    "webhooks:manage",
]
