"""Claims of a verified access token."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from features.auth.domain.errors import TokenAnonymous, TokenInvalid
from shared.caller import Caller

ROLE = "authenticated"
OPERATOR = "operator"
NAME_LENGTH_MAX = 200
NUL = "\\u0000"  # its JSON escape


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The Supabase claims that we read. The database gets only ``sub`` and ``role``."""

    sub: UUID
    exp: int
    role: str
    email: str = ""
    is_anonymous: bool = False
    app_metadata: dict[str, Any] = {}

    @property
    def expires_at(self) -> datetime:
        return datetime.fromtimestamp(self.exp, UTC)

    @property
    def account_name(self) -> str:
        """Name of a new user's first account."""
        return (self.email.partition("@")[0] or "My account")[:NAME_LENGTH_MAX]


def read_claims(verified: dict[str, Any]) -> tuple[Claims, str]:
    """Return the claims and the JSON that the database authorizes by.

    The JSON contains only ``sub`` and ``role``, because other claims (an ``api_key_id``) have a meaning in
    the database. Raises TokenInvalid or TokenAnonymous for a token that is not for a signed-in user or that
    contains a NUL character, which PostgreSQL cannot store.
    """
    try:
        claims = msgspec.convert(verified, Claims)
        _ = claims.expires_at
        text = msgspec.json.encode(verified).decode()
    except (msgspec.ValidationError, OverflowError, OSError, ValueError):
        raise TokenInvalid from None
    if claims.role != ROLE or NUL in text:
        raise TokenInvalid
    if claims.is_anonymous:
        raise TokenAnonymous
    return claims, msgspec.json.encode({"sub": claims.sub, "role": claims.role}).decode()


def caller_of(claims: Claims, text: str) -> Caller:
    """Return the caller. Only the identity service writes app_metadata, so users cannot make themselves
    operators.
    """
    return Caller(
        id=claims.sub,
        email=claims.email.strip().lower(),  # invitations are compared by this address
        claims=text,
        is_operator=claims.app_metadata.get("oslira_role") == OPERATOR,
    )
