"""Verification of access tokens."""

import json
import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Any, cast

import jwt
import msgspec

from features.auth.application.ports import TokenVerifier
from features.auth.domain.errors import TokenExpired, TokenInvalid
from infrastructure.identity.keys import Algorithm, Keys

LEEWAY_S = 30
LIFETIME_MAX_S = 366 * 86_400  # a project's API keys are tokens of ten years; no user session lasts that long
TOKEN_LENGTH_MAX = 8_192
KID_LENGTH_MAX = 256
TYPES = ("jwt", "at+jwt")
# Header parameters that would change the meaning of the signature or the payload.
UNREAD = frozenset({"crit", "b64", "zip", "enc"})
COMPACT = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
# Exceptions that parsing untrusted text can raise.
UNREADABLE = (jwt.PyJWTError, msgspec.ValidationError, ValueError, TypeError, ArithmeticError, RecursionError)


class _Times(msgspec.Struct, frozen=True):
    exp: int | float
    iat: int | float
    nbf: int | float = 0


class JwtVerifier(TokenVerifier):
    """Verifier for one issuer and one algorithm.

    It uses only ``kid`` from the token's header, to choose among the issuer's keys, and rejects an ``alg``
    other than the configured one.
    """

    def __init__(
        self,
        keys: Keys,
        *,
        algorithm: Algorithm,
        issuer: str,
        audience: str,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._keys = keys
        self._algorithm: Algorithm = algorithm
        self._issuer = issuer
        self._audience = audience
        self._now_s = now_s

    @property
    def generation(self) -> int:
        return self._keys.generation

    async def verify(self, token: str) -> dict[str, Any]:
        key = await self._keys.find(self._named_key(token))
        if key is None:
            raise TokenInvalid
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[self._algorithm],
                issuer=self._issuer,
                audience=self._audience,
                # The times are checked below, with our clock and as numbers only.
                options={
                    "require": ["exp", "iat", "sub", "aud", "iss"],
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
            self._check_times(msgspec.convert(claims, _Times))
        except UNREADABLE:
            raise TokenInvalid from None
        return claims

    def _named_key(self, token: str) -> str | None:
        """Return the ``kid``. Raises TokenInvalid for a token that our issuer cannot have issued, before any
        key lookup.
        """
        if len(token) > TOKEN_LENGTH_MAX or not COMPACT.fullmatch(token):
            raise TokenInvalid
        try:
            header = _read_header(token)
        except UNREADABLE:
            raise TokenInvalid from None
        kid = header.get("kid")
        kind = header.get("typ", "JWT")
        if (
            header.get("alg") != self._algorithm
            or UNREAD & header.keys()
            or not (isinstance(kind, str) and kind.lower() in TYPES)
            or not (kid is None or (isinstance(kid, str) and 0 < len(kid) <= KID_LENGTH_MAX))
        ):
            raise TokenInvalid
        return kid

    def _check_times(self, times: _Times) -> None:
        """Check the times. Each comparison is written so that NaN fails."""
        now_s = self._now_s()
        if not (times.iat <= now_s + LEEWAY_S and times.nbf <= now_s + LEEWAY_S):
            raise TokenInvalid
        if times.exp <= now_s - LEEWAY_S:
            raise TokenExpired
        if not times.exp - times.iat <= LIFETIME_MAX_S:
            raise TokenInvalid


def _read_header(token: str) -> dict[str, Any]:
    text = token.partition(".")[0]
    content = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    header = json.loads(content, object_pairs_hook=_without_repetition)
    if not isinstance(header, dict):
        raise TypeError
    return cast("dict[str, Any]", header)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError
    return dict(pairs)
