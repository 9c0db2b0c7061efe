"""Settings for access tokens (issuer, algorithm, keys) and for invitations."""

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import Literal, get_args
from urllib.parse import urlsplit

import msgspec

Algorithm = Literal["ES256", "RS256", "HS256"]

LOCAL_ISSUER = "http://127.0.0.1/auth/v1"
SECRET_BYTES_MIN = 32
# These secrets are published with Supabase's command line and its self-hosting example.
DEMO_SECRETS = (
    "super-secret-jwt-token-with-at-least-32-characters-long",
    "your-super-secret-jwt-token-with-at-least-32-characters-long",
)
DEMO_SERVICE_KEY = "sb_secret_N7UND0UgjKTVK-Uodkm0Hg_xSvEMPvz"
IDENTITY_SECRETS = ("SUPABASE_SERVICE_ROLE_KEY", "OSLIRA_JWT_SECRET")


class IdentitySettings(msgspec.Struct, frozen=True, kw_only=True):
    """One algorithm and one source of keys: ``jwks_url``, ``public_key``, ``secret``, or the local issuer."""

    algorithm: Algorithm = "ES256"
    issuer: str = LOCAL_ISSUER
    audience: str = "authenticated"
    jwks_url: str = ""
    public_key: str = ""
    secret: str = ""
    supabase_url: str = ""
    service_role_key: str = ""

    def __repr__(self) -> str:
        return f"IdentitySettings(algorithm={self.algorithm!r}, issuer={self.issuer!r})"

    @property
    def signs_locally(self) -> bool:
        return not (self.jwks_url or self.public_key or self.secret)


def read_identity(lookup: Callable[[str], str | None], errors: list[str]) -> IdentitySettings:
    """Adds contradictions to ``errors``. The messages never repeat values, because these may be secrets."""
    algorithm = _algorithm(lookup, errors)
    supabase_url = (lookup("SUPABASE_URL") or "").rstrip("/")
    supabase_issuer = supabase_url and f"{supabase_url}/auth/v1"
    public_key = (lookup("OSLIRA_JWT_PUBLIC_KEY") or "").replace("\\n", "\n")
    has_key_set = supabase_url and algorithm != "HS256" and not public_key
    identity = IdentitySettings(
        algorithm=algorithm,
        issuer=lookup("OSLIRA_JWT_ISSUER") or supabase_issuer or LOCAL_ISSUER,
        audience=lookup("OSLIRA_JWT_AUDIENCE") or "authenticated",
        jwks_url=lookup("OSLIRA_JWT_JWKS_URL")
        or (f"{supabase_issuer}/.well-known/jwks.json" if has_key_set else ""),
        public_key=public_key,
        secret=lookup("OSLIRA_JWT_SECRET") or "",
        supabase_url=supabase_url,
        service_role_key=lookup("SUPABASE_SERVICE_ROLE_KEY") or "",
    )
    errors += _key_errors(identity)
    errors += _address_errors(identity, ("https", "http"))
    if bool(identity.supabase_url) != bool(identity.service_role_key):
        errors.append(
            "SUPABASE_URL and SUPABASE_SERVICE_ROLE_KEY go together: the project whose tokens are"
            " accepted, and the key that sends its invitations."
        )
    return identity


def unsafe_identity(identity: IdentitySettings) -> list[str]:
    """Settings that are convenient on a laptop and a vulnerability on a server."""
    errors: list[str] = []
    if identity.signs_locally:
        errors.append(
            "OSLIRA_JWT_PUBLIC_KEY: anyone who can read the local key could sign tokens. Set it, or"
            " SUPABASE_URL, or OSLIRA_JWT_JWKS_URL."
        )
    if identity.issuer == LOCAL_ISSUER:
        errors.append("OSLIRA_JWT_ISSUER: set it, or SUPABASE_URL, to the issuer of the accepted tokens.")
    if identity.secret in DEMO_SECRETS:
        errors.append("OSLIRA_JWT_SECRET: Supabase publishes this one; anyone could sign tokens with it.")
    if _is_demo_key(identity.service_role_key):
        errors.append("SUPABASE_SERVICE_ROLE_KEY: Supabase publishes this one, or the secret that signed it.")
    if not _address_errors(identity, ("https", "http")):
        errors += _address_errors(identity, ("https",))
    return errors


def _is_demo_key(key: str) -> bool:
    """True for the published key and for any token that is signed with a published secret."""
    signed, _, signature = key.rpartition(".")
    digests = (hmac.digest(secret.encode(), signed.encode(), hashlib.sha256) for secret in DEMO_SECRETS)
    return key == DEMO_SERVICE_KEY or signature in {
        base64.urlsafe_b64encode(digest).decode().rstrip("=") for digest in digests
    }


def _algorithm(lookup: Callable[[str], str | None], errors: list[str]) -> Algorithm:
    value = lookup("OSLIRA_JWT_ALGORITHM") or "ES256"
    for algorithm in get_args(Algorithm):
        if value == algorithm:
            return algorithm
    errors.append(f"OSLIRA_JWT_ALGORITHM is {value!r}; use ES256, RS256 or HS256.")
    return "ES256"


def _key_errors(identity: IdentitySettings) -> list[str]:
    errors: list[str] = []
    shared = identity.algorithm == "HS256"
    if shared and (identity.public_key or identity.jwks_url):
        errors.append(
            "OSLIRA_JWT_ALGORITHM is HS256, which has a shared secret and no public key: remove"
            " OSLIRA_JWT_PUBLIC_KEY and OSLIRA_JWT_JWKS_URL, or use ES256 or RS256."
        )
    if shared and len(identity.secret.encode()) < SECRET_BYTES_MIN:
        errors.append(f"OSLIRA_JWT_SECRET: HS256 needs a secret of at least {SECRET_BYTES_MIN} bytes.")
    if not shared and identity.secret:
        errors.append("OSLIRA_JWT_SECRET is for HS256: set OSLIRA_JWT_ALGORITHM=HS256, or remove it.")
    if identity.public_key and identity.jwks_url:
        errors.append("OSLIRA_JWT_PUBLIC_KEY and OSLIRA_JWT_JWKS_URL are two sources of keys: keep one.")
    if identity.algorithm == "RS256" and identity.signs_locally:
        errors.append(
            "OSLIRA_JWT_ALGORITHM is RS256, but tokens signed on this machine are ES256: set SUPABASE_URL,"
            " OSLIRA_JWT_JWKS_URL or OSLIRA_JWT_PUBLIC_KEY."
        )
    return errors


def _address_errors(identity: IdentitySettings, schemes: tuple[str, ...]) -> list[str]:
    errors: list[str] = []
    if identity.supabase_url and not _is_address(identity.supabase_url, schemes, path=False):
        errors.append("SUPABASE_URL is not an address like https://project.supabase.co")
    # A JWKS URL derived from SUPABASE_URL has the same error, which must be reported once.
    elif identity.jwks_url and not _is_address(identity.jwks_url, schemes, path=True):
        errors.append("OSLIRA_JWT_JWKS_URL is not an address like https://id.example/jwks.json")
    return errors


def _is_address(url: str, schemes: tuple[str, ...], *, path: bool) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return (
        parts.scheme in schemes
        and bool(parts.hostname)
        and parts.username is None
        and not parts.fragment
        and url.isascii()
        and url.isprintable()
        and " " not in url
        and (path or not (parts.path or parts.query))
    )
