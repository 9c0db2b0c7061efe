"""Addresses of the two login roles, derived from the owner's address."""

import base64
import hashlib
import hmac
from urllib.parse import quote, unquote, urlsplit, urlunsplit

USER_ROLE = "app_user"
ADMIN_ROLE = "app_admin"


def role_password(owner_url: str, role: str) -> str | None:
    """Derives the password from the owner's, so that every process can compute it without configuration."""
    password = urlsplit(owner_url).password
    if not password:
        return None
    digest = hmac.digest(unquote(password).encode(), f"oslira:{role}".encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def role_url(owner_url: str, role: str) -> str:
    """Keeps the project in the user name: Supabase's pooler expects ``role.project``."""
    parts = urlsplit(owner_url)
    project = (parts.username or "").partition(".")[2]
    user = quote(f"{role}.{project}" if project else role)
    password = role_password(owner_url, role)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{user}:{password}@{host}" if password else f"{user}@{host}"))
