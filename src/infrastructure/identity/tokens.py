"""Local token issuer for development, with Supabase's claims."""

import base64
import hashlib
import json
import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

ALGORITHM: Literal["ES256"] = "ES256"


class LocalIssuer:
    """Signs tokens with a key that is stored only in the data folder."""

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

    @property
    def jwk(self) -> dict[str, str]:
        """The public key as an entry of a JWKS document; ``kid`` is the key's thumbprint (RFC 7638)."""
        parts = jwt.get_algorithm_by_name(ALGORITHM).to_jwk(self._key.public_key(), as_dict=True)
        public = {name: parts[name] for name in ("crv", "kty", "x", "y")}
        thumbprint = hashlib.sha256(json.dumps(public, separators=(",", ":")).encode()).digest()
        kid = base64.urlsafe_b64encode(thumbprint).rstrip(b"=").decode()
        return {**public, "kid": kid, "use": "sig", "alg": ALGORITHM}

    def token(self, email: str, *, lifetime: timedelta, is_operator: bool = False) -> str:
        """Return a signed token. The same e-mail address always gives the same user id."""
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
        return jwt.encode(claims, self._key, algorithm=ALGORITHM, headers={"kid": self.jwk["kid"]})


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
    # Write to a temporary file and link it, so that two concurrent processes use the same key.
    with tempfile.NamedTemporaryFile(dir=path.parent) as file:  # created with mode 0600
        file.write(pem)
        file.flush()
        try:
            os.link(file.name, path)
        except FileExistsError:
            return
