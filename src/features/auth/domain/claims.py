"""What a verified token says about its bearer."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from features.auth.domain.errors import TokenAnonymous, TokenInvalid
from shared.caller import Caller

ROLE = "authenticated"
OPERATOR = "operator"
NAME_LENGTH_MAX = 200
NUL = "\\u0000"  # as JSON writes it


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The part of Supabase's claims we read. Of these, the database sees ``sub`` and ``role`` only."""

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
        """What the first account of a new user is called until its owner renames it."""
        return (self.email.partition("@")[0] or "My account")[:NAME_LENGTH_MAX]


def read_claims(verified: dict[str, Any]) -> tuple[Claims, str]:
    """The claims, and the JSON that the database decides by: only claims named here, because others (an
    ``api_key_id``) may have a meaning there. Refuses tokens that are well signed but not meant for a
    signed-in user, or that hold text which no database can keep.
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
    """app_metadata is written by the identity service alone, so an operator cannot name themself."""
    return Caller(
        id=claims.sub,
        email=claims.email.strip().lower(),  # compared with invitations
        claims=text,
        is_operator=claims.app_metadata.get("oslira_role") == OPERATOR,
    )
