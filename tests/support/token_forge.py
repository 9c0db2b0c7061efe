"""Attackers' tokens, with headers and claims that libraries refuse to write."""

import base64
import hashlib
import hmac
import json
import secrets
import uuid

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ISSUER, AUDIENCE = "https://id.test/auth/v1", "authenticated"
NOW_S = 1_800_000_000
KID = "the-key"


def encoded(data):
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def new_key(algorithm):
    match algorithm:
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "RS256":
            return rsa_key(2_048)
    return secrets.token_bytes(32)


def rsa_key(bits):
    return rsa.generate_private_key(public_exponent=65_537, key_size=bits)


def public_pem(key):
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def public_jwk(key, algorithm, **changes):
    """The key as an entry of a JWKS document, with changes; None removes a field."""
    parts = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
    jwk = {"kid": KID, "use": "sig", "alg": algorithm, **parts, "key_ops": ["verify"]} | changes
    return {name: value for name, value in jwk.items() if value is not None}


def claims_with(**changes):
    """Valid claims at NOW_S, with changes; None removes a claim."""
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": str(uuid.UUID(int=7)),
        "role": "authenticated",
        "email": "ada@example.com",
        "is_anonymous": False,
        "iat": NOW_S - 60,
        "exp": NOW_S + 3_540,
    } | changes
    return {name: value for name, value in claims.items() if value is not None}


class Smith:
    """Has the issuer's key, for genuine tokens with invalid content, and another key."""

    def __init__(self, algorithm):
        self.algorithm = algorithm
        self.key = new_key(algorithm)
        self.strangers_key = new_key(algorithm)

    def token(self, header=None, claims=None, *, key=None, algorithm=None):
        """Signed with the issuer's key by default. None removes a header."""
        algorithm = algorithm or self.algorithm
        header = {"alg": algorithm, "typ": "JWT", "kid": KID} | (header or {})
        header = {name: value for name, value in header.items() if value is not None}
        return self.over(encoded(header), encoded(claims or claims_with()), key=key, algorithm=algorithm)

    def over(self, header, payload, *, key=None, algorithm=None):
        text = f"{header}.{payload}"
        signer = jwt.get_algorithm_by_name(algorithm or self.algorithm)
        return f"{text}.{encoded(signer.sign(text.encode(), key or self.key))}"

    def forged(self, header=None, claims=None):
        return self.token(header, claims, key=self.strangers_key)

    def by_hmac(self, secret, **header):
        """Signed with any secret, including a PEM, which PyJWT refuses."""
        text = f"{encoded({'alg': 'HS256', 'typ': 'JWT', 'kid': KID, **header})}.{encoded(claims_with())}"
        return f"{text}.{encoded(hmac.digest(secret, text.encode(), hashlib.sha256))}"

    def with_signature(self, signature, **header):
        """Valid except for the signature."""
        text = self.token(header).rpartition(".")[0]
        return f"{text}.{encoded(signature)}"

    @property
    def strangers_jwk(self):
        if self.algorithm == "HS256":
            return {"kty": "oct", "k": encoded(self.strangers_key), "kid": KID}
        return public_jwk(self.strangers_key, self.algorithm)

    @property
    def known_texts(self):
        """Public or guessable values that other systems have accepted as a secret."""
        if self.algorithm == "HS256":
            return [b"", b"secret", b"null", KID.encode(), ISSUER.encode()]
        pem = public_pem(self.key)
        jwk = public_jwk(self.key, self.algorithm)
        der = self.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return [pem, pem.strip(), der, json.dumps(jwk).encode(), jwk.get("x", jwk.get("n", "")).encode()]
