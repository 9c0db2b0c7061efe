"""Sentry DSN, the destination of reports about unexpected errors."""

from collections.abc import Callable
from urllib.parse import urlsplit

Lookup = Callable[[str], str | None]


def read_sentry_dsn(lookup: Lookup, errors: list[str]) -> str:
    value = lookup("SENTRY_DSN") or ""
    if value and not _is_dsn(value):
        # The message must not repeat the DSN, because it contains a key.
        errors.append("SENTRY_DSN: use https://key@host/project, as Sentry shows it in a project's settings.")
        return ""
    return value


def unsafe_sentry_dsn(dsn: str) -> list[str]:
    if dsn and not dsn.startswith("https://"):
        return ["SENTRY_DSN: without https:// reports would travel unencrypted."]
    return []


def _is_dsn(value: str) -> bool:
    try:
        parts = urlsplit(value)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    project = parts.path.rpartition("/")[2]
    is_project = project.isascii() and project.isdigit()
    return parts.scheme in ("https", "http") and bool(parts.username) and has_host and is_project
