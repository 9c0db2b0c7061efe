"""Invitations: a link sent to an e-mail address that lets the user with that address join an account."""

import hashlib
import re
import secrets
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from features.auth.domain.errors import EmailInvalid
from features.auth.domain.roles import Role
from shared.ids import AccountId, UserId

PREFIX = "osl_invite_"
LIFETIME = timedelta(days=7)
EMAIL_LENGTH_MAX = 254
# Only a mail shows whether an address exists; this rejects addresses that no mail server accepts.
EMAIL_PATTERN = r"^[A-Za-z0-9.!#$%&*+/=?^_{|}~-]{1,64}@([A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,63}$"


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    account_id: AccountId
    id: UUID
    email: str
    role: Role
    invited_by: UserId
    created_at: datetime
    expires_at: datetime
    sent_at: datetime | None
    closed_at: datetime | None


def tidy_email(email: str) -> str:
    """Normalize to lower case, as the identity service does. Raises EmailInvalid."""
    tidy = email.strip().lower()
    if len(tidy) > EMAIL_LENGTH_MAX or not re.fullmatch(EMAIL_PATTERN, tidy):
        raise EmailInvalid
    return tidy


def new_token() -> str:
    """Return a token whose prefix logs and secret scanners recognise."""
    return PREFIX + secrets.token_urlsafe(32)


def token_hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
