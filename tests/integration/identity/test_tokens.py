"""Local issuer: tokens with Supabase's claims, and a protected key file."""

import stat
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from infrastructure.identity.keys import FixedKey, KeyInvalid, load_pem, read_jwks
from infrastructure.identity.tokens import LocalIssuer, user_id_of
from infrastructure.identity.verifier import JwtVerifier
from tests.support.token_forge import new_key, public_pem, rsa_key

ISSUER, AUDIENCE = "http://id.test/auth/v1", "authenticated"
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("identity")


@pytest.fixture(scope="module")
def issuer(folder):
    return LocalIssuer(folder, issuer=ISSUER, audience=AUDIENCE)


@pytest.fixture(scope="module")
def verifier(issuer):
    key = load_pem(issuer.public_key, "ES256")
    return JwtVerifier(FixedKey(key), algorithm="ES256", issuer=ISSUER, audience=AUDIENCE)


async def test_local_token_is_valid_and_has_supabases_claims(issuer, verifier):
    claims = await verifier.verify(issuer.token("Ada@example.com", lifetime=HOUR))

    assert uuid.UUID(claims.pop("session_id"))
    assert claims.pop("exp") - claims.pop("iat") == 3600
    assert claims == {
        "iss": ISSUER,
        "aud": "authenticated",
        "sub": str(user_id_of("ada@example.com")),
        "role": "authenticated",
        "email": "Ada@example.com",
        "aal": "aal1",
        "is_anonymous": False,
        "app_metadata": {"provider": "email", "providers": ["email"]},
        "user_metadata": {},
    }


async def test_operator_role_is_in_app_metadata(issuer, verifier):
    claims = await verifier.verify(issuer.token("a@example.com", lifetime=HOUR, is_operator=True))

    assert claims["app_metadata"]["oslira_role"] == "operator"
    assert claims["user_metadata"] == {}


def test_user_id_ignores_case_and_spaces_of_the_email_address():
    assert user_id_of("Ada@Example.com ") == user_id_of("ada@example.com") != user_id_of("bob@example.com")


def test_key_file_has_mode_0600_and_no_temporary_file_is_left(folder, issuer):
    assert issuer.public_key.startswith("-----BEGIN PUBLIC KEY-----")
    assert stat.S_IMODE((folder / "es256.pem").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == ["es256.pem"]


def test_concurrent_issuers_share_one_key(tmp_path):
    def start(_):
        return LocalIssuer(tmp_path / "new" / "identity", issuer=ISSUER, audience=AUDIENCE).public_key

    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(start, range(16)))

    assert len(keys) == 1


def test_kid_of_a_token_is_in_the_jwks(issuer):
    keys = read_jwks(msgspec.json.encode({"keys": [issuer.jwk]}), "ES256")

    kid = jwt.get_unverified_header(issuer.token("ada@example.com", lifetime=HOUR))["kid"]
    assert keys == {kid: load_pem(issuer.public_key, "ES256")}
    assert set(issuer.jwk) == {"kty", "crv", "x", "y", "kid", "use", "alg"}  # no private fields


@pytest.mark.parametrize(
    ("pem", "algorithm"),
    [
        (public_pem(new_key("RS256")), "ES256"),
        (public_pem(new_key("ES256")), "RS256"),
        (public_pem(ec.generate_private_key(ec.SECP384R1())), "ES256"),
        (public_pem(ec.generate_private_key(ec.SECP256K1())), "ES256"),
        (public_pem(rsa_key(1_024)), "RS256"),
        (b"garbage", "ES256"),
        (b"", "RS256"),
        (b"-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----", "ES256"),
    ],
    ids=["rsa", "elliptic", "p-384", "koblitz", "short rsa", "garbage", "nothing", "cut off"],
)
def test_key_of_another_algorithm_raises_key_invalid(pem, algorithm):
    with pytest.raises(KeyInvalid):
        load_pem(pem.decode(), algorithm)
