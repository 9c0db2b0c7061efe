"""Keys that signatures are checked with: from PEM, from a JWKS document, of one algorithm each."""

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
RSA_BITS_MAX = 8_192  # a larger one only costs time
KEY_TYPES: dict[str, tuple[str, str | None]] = {"ES256": ("EC", "P-256"), "RS256": ("RSA", None)}


class Keys(Protocol):
    generation: int
    """Changes when a key stops being accepted: what was verified before may not be any more."""

    async def find(self, kid: str | None) -> Key | None:
        """The key that a token's header names. Raises IdentityUnavailable when none was ever loaded."""
        ...


class FixedKey(Keys):
    """The one key of the configuration; a token's ``kid`` does not matter."""

    generation: int = 0

    def __init__(self, key: Key) -> None:
        self._key = key

    async def find(self, kid: str | None) -> Key:  # noqa: ARG002  of the port
        return self._key


class KeyInvalid(ValueError):
    """Not a public key that the algorithm can use."""


class KeySetInvalid(ValueError):
    """Not a JWKS document, or one that cannot be right."""


class _Jwk(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that decide whether a key is ours to use; unknown ones are passed over."""

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
    d: object = None  # never used: its presence is enough


class _Jwks(msgspec.Struct, frozen=True):
    keys: list[msgspec.Raw]


def load_pem(pem: str, algorithm: PublicKeyAlgorithm) -> Key:
    try:
        key = serialization.load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise KeyInvalid from None
    return _checked(key, algorithm)


def read_jwks(document: bytes, algorithm: PublicKeyAlgorithm) -> dict[str | None, Key]:
    """The document's keys for this algorithm, by ``kid``. A key that is not for us is passed over, a
    document with two keys of one name is refused: which of them is meant would be a guess.
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
        and jwk.d is None  # published, so anyone can sign with it
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
