"""Public keys for token signatures, loaded from PEM or a JWKS document."""

from typing import Literal, Protocol

import jwt
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

PublicKeyAlgorithm = Literal["ES256", "RS256"]
Algorithm = PublicKeyAlgorithm | Literal["HS256"]
Key = ec.EllipticCurvePublicKey | rsa.RSAPublicKey | bytes

RSA_BITS_MIN = 2_048
RSA_BITS_MAX = 8_192  # a larger key only costs time
KEY_TYPES: dict[str, tuple[str, str | None]] = {"ES256": ("EC", "P-256"), "RS256": ("RSA", None)}


class Keys(Protocol):
    generation: int
    """Counter that changes when a key is withdrawn: earlier verifications are then void."""

    async def find(self, kid: str | None) -> Key | None:
        """Find the key that a token's header names. Raises IdentityUnavailable before the first key is
        loaded.
        """
        ...


class FixedKey(Keys):
    """The configured key; a token's ``kid`` is ignored."""

    generation: int = 0

    def __init__(self, key: Key) -> None:
        self._key = key

    async def find(self, kid: str | None) -> Key:  # noqa: ARG002  required by the port
        return self._key


class KeyInvalid(ValueError):
    """The text is not a public key for the algorithm."""


class KeySetInvalid(ValueError):
    """The document is not a valid JWKS document."""


class _Jwk(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that decide whether we can use a key; others are ignored."""

    kty: str
    kid: str | None = None
    use: str | None = None
    alg: str | None = None
    key_ops: list[str] | None = None
    crv: str | None = None
    x: str = ""
    y: str = ""
    n: str = ""
    e: str = ""
    d: object = None  # only its presence matters


class _Jwks(msgspec.Struct, frozen=True):
    keys: list[msgspec.Raw]


def load_pem(pem: str, algorithm: PublicKeyAlgorithm) -> Key:
    try:
        key = serialization.load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise KeyInvalid from None
    return _checked(key, algorithm)


def read_jwks(document: bytes, algorithm: PublicKeyAlgorithm) -> dict[str | None, Key]:
    """Return the document's keys for this algorithm by ``kid``; unusable keys are skipped.

    Raises KeySetInvalid when two keys have the same ``kid``, because the choice would be ambiguous.
    """
    keys: dict[str | None, Key] = {}
    try:
        entries = msgspec.json.decode(document.decode(), type=_Jwks).keys
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise KeySetInvalid("not a JWKS document") from None
    for entry in entries:
        try:
            jwk = msgspec.json.decode(entry, type=_Jwk)
            key = _usable(jwk, algorithm)
        except (msgspec.DecodeError, RecursionError, KeyInvalid):
            continue
        if jwk.kid in keys:
            raise KeySetInvalid("two keys of one kid")
        keys[jwk.kid] = key
    return keys


def _usable(jwk: _Jwk, algorithm: PublicKeyAlgorithm) -> Key:
    is_for_us = (
        (jwk.kty, jwk.crv) == KEY_TYPES[algorithm]
        and jwk.use in (None, "sig")
        and jwk.alg in (None, algorithm)
        and (jwk.key_ops is None or "verify" in jwk.key_ops)
        and jwk.d is None  # a published private key, so any client could sign with it
    )
    if not is_for_us:
        raise KeyInvalid
    parts = {"kty": jwk.kty, "crv": jwk.crv or "", "x": jwk.x, "y": jwk.y, "n": jwk.n, "e": jwk.e}
    try:
        key = jwt.get_algorithm_by_name(algorithm).from_jwk(parts)
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
        raise KeyInvalid from None
    return _checked(key, algorithm)


def _checked(key: object, algorithm: PublicKeyAlgorithm) -> Key:
    match algorithm, key:
        case "ES256", ec.EllipticCurvePublicKey() if isinstance(key.curve, ec.SECP256R1):
            return key
        case "RS256", rsa.RSAPublicKey() if RSA_BITS_MIN <= key.key_size <= RSA_BITS_MAX:
            return key
        case _:
            raise KeyInvalid
