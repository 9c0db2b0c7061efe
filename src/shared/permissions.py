"""What can be allowed. Which role may do what is the auth slice's table; a route names what it needs."""

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
