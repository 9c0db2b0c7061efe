"""Access tokens: a local issuer with Supabase's claims, and the check every token has to pass."""

import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from features.auth.application.ports import TokenVerifier
from features.auth.domain.errors import TokenExpired, TokenInvalid

ALGORITHM = "ES256"
LEEWAY = timedelta(seconds=30)


class PublicKeyInvalid(ValueError):
    """Not the public half of an ES256 key in PEM."""


class Es256Verifier(TokenVerifier):
    """One issuer, one algorithm, one key; what the token's header asks for is not considered."""

    def __init__(self, public_key: str, *, issuer: str, audience: str) -> None:
        self._key = _load_public(public_key)
        self._issuer = issuer
        self._audience = audience

    @property
    def generation(self) -> int:
        return 0

    async def verify(self, token: str) -> dict[str, Any]:
        try:
            return jwt.decode(
                token,
                self._key,
                algorithms=[ALGORITHM],
                issuer=self._issuer,
                audience=self._audience,
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "sub", "aud", "iss"]},
            )
        except jwt.ExpiredSignatureError:
            raise TokenExpired from None
        except (jwt.PyJWTError, ValueError, TypeError):
            raise TokenInvalid from None


def _load_public(pem: str) -> ec.EllipticCurvePublicKey:
    try:
        key = serialization.load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise PublicKeyInvalid from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise PublicKeyInvalid
    return key


class LocalIssuer:
    """Signs tokens on this machine, with a key that never leaves the data folder."""

    def __init__(self, folder: Path, *, issuer: str, audience: str) -> None:
        self._issuer = issuer
        self._audience = audience
        self._key = _load_or_create(folder / "es256.pem")

    @property
    def public_key(self) -> str:
        return (
            self._key.public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            .decode()
        )

    def token(self, email: str, *, lifetime: timedelta, is_operator: bool = False) -> str:
        """The same e-mail address is always the same user."""
        now = datetime.now(UTC)
        claims = {
            "iss": self._issuer,
            "aud": self._audience,
            "sub": str(user_id_of(email)),
            "role": "authenticated",
            "email": email,
            "aal": "aal1",
            "session_id": str(uuid4()),
            "is_anonymous": False,
            "app_metadata": {"provider": "email", "providers": ["email"]}
            | ({"oslira_role": "operator"} if is_operator else {}),
            "user_metadata": {},
            "iat": now,
            "exp": now + lifetime,
        }
        return jwt.encode(claims, self._key, algorithm=ALGORITHM)


def user_id_of(email: str) -> UUID:
    return uuid5(NAMESPACE_URL, f"mailto:{email.strip().lower()}")


def _load_or_create(path: Path) -> ec.EllipticCurvePrivateKey:
    if not path.exists():
        _create(path)
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey), "the file was written by us"
    return key


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    # Written aside and linked into place: of two processes that race, both end up with one key.
    with tempfile.NamedTemporaryFile(dir=path.parent) as file:  # made with mode 0600
        file.write(pem)
        file.flush()
        try:
            os.link(file.name, path)
        except FileExistsError:
            return
