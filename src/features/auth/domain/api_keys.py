"""API keys: ``osl_live_<id>_<secret><checksum>``.

The id is for lookups and logs, only the owner has the secret, and the checksum detects a mistyped key without
a database query; secret scanners use it as well.
"""

import hashlib
import re
import secrets
import zlib
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

import msgspec

from features.auth.domain.errors import ApiKeyMistyped, ExpiryInvalid
from features.auth.domain.roles import Scope
from shared.ids import AccountId, UserId

Mode = Literal["live", "test"]

PREFIX = "osl_"
LIFETIME_MAX = timedelta(days=5 * 366)
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_LENGTH = 22  # 128 bits
_SECRET_LENGTH = 32  # 190 bits: a plain hash is sufficient
_CHECKSUM_LENGTH = 6  # 32 bits
_KEY = re.compile(
    rf"(?P<checked>osl_(?P<mode>live|test)_(?P<id>[0-9A-Za-z]{{{_ID_LENGTH}}})_"
    rf"(?P<secret>[0-9A-Za-z]{{{_SECRET_LENGTH}}}))(?P<checksum>[0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})"
)


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """An API key without its secret."""

    account_id: AccountId
    id: UUID
    family_id: UUID
    name: str
    mode: Mode
    scopes: list[Scope]
    project: str | None
    credits_per_month_max: int | None
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    created_by: UserId
    created_at: datetime

    @property
    def hint(self) -> str:
        """Prefix that identifies the key but cannot be used as a key."""
        return f"{PREFIX}{self.mode}_{_base62(self.id.int, _ID_LENGTH)}_..."

    def is_valid(self, at: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)


class PresentedApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key from a request whose checksum is correct."""

    id: UUID
    mode: Mode
    secret_hash: bytes


class IssuedApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new key: ``text`` is shown once, ``secret_hash`` is stored."""

    id: UUID
    text: str
    secret_hash: bytes


def issue(key_id: UUID, mode: Mode) -> IssuedApiKey:
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))
    checked = f"{PREFIX}{mode}_{_base62(key_id.int, _ID_LENGTH)}_{secret}"
    return IssuedApiKey(id=key_id, text=checked + _checksum(checked), secret_hash=_hash(secret))


def read_key(text: str) -> PresentedApiKey:
    """Parse a key. Raises ApiKeyMistyped if it is malformed; does not check whether the key exists."""
    match = _KEY.fullmatch(text)
    if match is None or _checksum(match["checked"]) != match["checksum"]:
        raise ApiKeyMistyped
    number = 0
    for digit in match["id"]:
        number = number * len(_ALPHABET) + _ALPHABET.index(digit)
    if number >= 1 << 128:
        raise ApiKeyMistyped
    mode: Mode = "live" if match["mode"] == "live" else "test"
    return PresentedApiKey(id=UUID(int=number), mode=mode, secret_hash=_hash(match["secret"]))


def check_expiry(expires_at: datetime | None, now: datetime) -> None:
    if expires_at is not None and not now < expires_at <= now + LIFETIME_MAX:
        raise ExpiryInvalid


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECKSUM_LENGTH)


def _base62(number: int, length: int) -> str:
    digits: list[str] = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
