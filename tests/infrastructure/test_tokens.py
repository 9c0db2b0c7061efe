"""Tokens: the local issuer's are Supabase's in shape, and nothing else gets past the verifier."""

import base64
import hashlib
import hmac
import json
import stat
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from features.auth.application.callers import Callers
from features.auth.domain.errors import TokenExpired, TokenInvalid
from infrastructure.identity.tokens import Es256Verifier, LocalIssuer, PublicKeyInvalid, user_id_of
from shared.errors import Unauthenticated

ISSUER, AUDIENCE = "http://id.test/auth/v1", "authenticated"
STRANGERS_KEY = ec.generate_private_key(ec.SECP256R1())
HOUR = timedelta(hours=1)


def encoded(data):
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def by_hand(header, claims, *, hmac_key=None, key=None):
    """A token as an attacker writes it, with headers and claims that a library would refuse to write."""
    text = f"{encoded(header)}.{encoded(claims)}"
    if hmac_key is not None:
        signature = hmac.digest(hmac_key, text.encode(), hashlib.sha256)
    elif key is not None:
        signature = jwt.get_algorithm_by_name("ES256").sign(text.encode(), key)
    else:
        signature = b""
    return f"{text}.{encoded(signature)}"


def claims_with(**changes):
    """Good claims, changed; a claim that becomes None is left out."""
    now_s = int(time.time())
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": str(uuid.uuid4()),
        "role": "authenticated",
        "iat": now_s,
        "exp": now_s + 3600,
    } | changes
    return {name: value for name, value in claims.items() if value is not None}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("identity")


@pytest.fixture(scope="module")
def issuer(folder):
    return LocalIssuer(folder, issuer=ISSUER, audience=AUDIENCE)


@pytest.fixture(scope="module")
def key(issuer, folder):
    """The issuer's own private key: for tokens that are genuine and still wrong."""
    assert issuer.public_key
    return load_pem_private_key((folder / "es256.pem").read_bytes(), password=None)


@pytest.fixture(scope="module")
def verifier(issuer):
    return Es256Verifier(issuer.public_key, issuer=ISSUER, audience=AUDIENCE)


class NoSignUps:
    async def first_sight(self, user_id, **_):
        return user_id


@pytest.fixture
def callers(verifier):
    return Callers(verifier, NoSignUps(), None, 25, lambda: datetime.now(UTC))


async def test_a_local_token_verifies_and_has_supabases_claims(issuer, verifier):
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


async def test_an_operators_token_says_so_where_users_cannot_write(issuer, verifier):
    claims = await verifier.verify(issuer.token("a@example.com", lifetime=HOUR, is_operator=True))

    assert claims["app_metadata"]["oslira_role"] == "operator"
    assert claims["user_metadata"] == {}


def test_the_same_address_is_the_same_user_however_it_is_written():
    assert user_id_of("Ada@Example.com ") == user_id_of("ada@example.com") != user_id_of("bob@example.com")


def test_the_key_is_readable_by_its_owner_alone_and_leaves_nothing_beside_it(folder, issuer):
    assert issuer.public_key.startswith("-----BEGIN PUBLIC KEY-----")
    assert stat.S_IMODE((folder / "es256.pem").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == ["es256.pem"]


def test_issuers_that_race_for_a_new_folder_end_up_with_one_key(tmp_path):
    def start(_):
        return LocalIssuer(tmp_path / "new" / "identity", issuer=ISSUER, audience=AUDIENCE).public_key

    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(start, range(16)))

    assert len(keys) == 1


HEADER = {"alg": "ES256", "typ": "JWT"}
STRANGERS_JWK = json.loads(jwt.get_algorithm_by_name("ES256").to_jwk(STRANGERS_KEY.public_key()))

FORGED = {
    "empty": lambda _: "",
    "blank": lambda _: "   ",
    "one part": lambda _: "canary",
    "two parts": lambda _: "a.b",
    "four parts": lambda _: "a.b.c.d",
    "only dots": lambda _: "..",
    "garbage base64": lambda _: "!!!.???.***",
    "bytes beyond ascii": lambda _: "\xff\xfe.\xff.\xff",
    "lone surrogate": lambda _: "\ud800.\ud800.\ud800",
    "nul": lambda _: "\0.\0.\0",
    "header is no utf-8": lambda _: f"{encoded(bytes([255, 254]))}.{encoded(claims_with())}.AA",
    "header is a list": lambda _: by_hand([], claims_with(), key=STRANGERS_KEY),
    "header is nested deep": lambda _: f"{encoded(b'[' * 3_000)}.{encoded(claims_with())}.AA",
    "huge": lambda _: by_hand(HEADER, claims_with(x="x" * 1_000_000), key=STRANGERS_KEY),
    "unsigned": lambda _: by_hand(HEADER, claims_with()),
    "alg none": lambda _: by_hand({"alg": "none"}, claims_with()),
    "alg nOnE": lambda _: by_hand({"alg": "nOnE"}, claims_with()),
    "no alg": lambda _: by_hand({"typ": "JWT"}, claims_with(), key=STRANGERS_KEY),
    "alg is a list": lambda _: by_hand({"alg": ["ES256"]}, claims_with(), key=STRANGERS_KEY),
    "HS256 with the public key": lambda public: by_hand({"alg": "HS256"}, claims_with(), hmac_key=public),
    "ES256 with an HMAC": lambda public: by_hand(HEADER, claims_with(), hmac_key=public),
    "stranger's key": lambda _: by_hand(HEADER, claims_with(), key=STRANGERS_KEY),
    "brings its jwk": lambda _: by_hand(HEADER | {"jwk": STRANGERS_JWK}, claims_with(), key=STRANGERS_KEY),
    "brings its jku": lambda _: by_hand(
        HEADER | {"jku": "https://evil.test"}, claims_with(), key=STRANGERS_KEY
    ),
    "kid leads to a path": lambda _: by_hand(
        {"alg": "HS256", "kid": "../../../dev/null"}, claims_with(), hmac_key=b""
    ),
    "kid is sql": lambda _: by_hand(HEADER | {"kid": "' union select 'x"}, claims_with(), key=STRANGERS_KEY),
    "signature of zeros": lambda _: by_hand(HEADER, claims_with())[:-1] + "." + encoded(bytes(64)),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
async def test_a_forged_token_is_refused_and_breaks_nothing(verifier, issuer, forge):
    token = forge(issuer.public_key.encode())

    with pytest.raises(TokenInvalid):
        await verifier.verify(token)


async def test_a_token_changed_after_signing_is_refused(verifier, issuer):
    header, _, signature = issuer.token("ada@example.com", lifetime=HOUR).split(".")

    with pytest.raises(TokenInvalid):
        await verifier.verify(f"{header}.{encoded(claims_with(role='service_role'))}.{signature}")


FAR = 2**40

WRONG_CLAIMS = [
    {"aud": "somebody-else"},
    {"aud": ["somebody-else"]},
    {"aud": 1},
    {"aud": None},
    {"iss": "https://evil.test"},
    {"iss": None},
    {"sub": None},
    {"sub": 1},
    {"iat": None},
    {"iat": "yesterday"},
    {"iat": FAR},
    {"iat": float("inf")},
    {"nbf": FAR},
    {"nbf": "tomorrow"},
    {"exp": None},
    {"exp": "never"},
    {"exp": []},
    {"exp": float("inf")},
    {"exp": float("nan")},
]


@pytest.mark.parametrize("changes", WRONG_CLAIMS, ids=str)
async def test_a_genuine_token_with_wrong_claims_is_refused(verifier, key, changes):
    token = by_hand(HEADER, claims_with(**changes), key=key)

    with pytest.raises(TokenInvalid):
        await verifier.verify(token)


@pytest.mark.parametrize(
    "header",
    [{"crit": ["exp"]}, {"crit": ["x"], "x": 1}, {"b64": False, "crit": ["b64"]}, {"kid": 1}],
    ids=str,
)
async def test_a_genuine_token_that_asks_for_what_we_do_not_do_is_refused(verifier, key, header):
    token = by_hand(HEADER | header, claims_with(), key=key)

    with pytest.raises(TokenInvalid):
        await verifier.verify(token)


@pytest.mark.parametrize("payload", [b"", b"[]", b"null", b"1", b"\xff", b"[" * 3_000, b'{"exp":'], ids=str)
async def test_a_genuine_signature_over_something_else_is_refused(verifier, key, payload):
    with pytest.raises(TokenInvalid):
        await verifier.verify(by_hand(HEADER, payload, key=key))


NOT_A_USER = [
    {"sub": "ada"},
    {"sub": ""},
    {"role": "anon"},
    {"role": "service_role"},
    {"role": None},
    {"role": ["authenticated"]},
    {"exp": 2**70},
    {"exp": FAR},
    {"exp": str(FAR)},
    {"exp": 4e9},
    {"app_metadata": "operator"},
    {"email": 1},
    {"email": "\0@example.com"},
    {"email": "\ud800@example.com"},
    {"user_metadata": {"name": "\0"}},
    {"user_metadata": {"name": "\ud800"}},
]


@pytest.mark.parametrize("changes", NOT_A_USER, ids=ascii)
async def test_a_genuine_token_of_nobody_who_is_signed_in_names_no_caller(callers, key, changes):
    token = by_hand(HEADER, claims_with(**changes), key=key)

    with pytest.raises(Unauthenticated):
        await callers.identify(f"Bearer {token}")


@pytest.mark.parametrize(("claim", "seconds"), [("exp", -25), ("nbf", 25), ("iat", 25)])
async def test_clocks_may_differ_by_half_a_minute(verifier, key, claim, seconds):
    claims = claims_with(**{claim: int(time.time()) + seconds})

    assert await verifier.verify(by_hand(HEADER, claims, key=key)) == claims


@pytest.mark.parametrize(
    ("claim", "seconds", "error"),
    [("exp", -32, TokenExpired), ("nbf", 60, TokenInvalid), ("iat", 60, TokenInvalid)],
)
async def test_clocks_may_not_differ_by_more(verifier, key, claim, seconds, error):
    claims = claims_with(**{claim: int(time.time()) + seconds})

    with pytest.raises(error):
        await verifier.verify(by_hand(HEADER, claims, key=key))


async def test_the_audience_may_be_one_of_several(verifier, key):
    claims = claims_with(aud=["another", AUDIENCE])

    assert await verifier.verify(by_hand(HEADER, claims, key=key)) == claims


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key(),
        ec.generate_private_key(ec.SECP384R1()).public_key(),
        None,
    ],
    ids=["rsa", "another curve", "no key at all"],
)
def test_a_key_of_another_kind_is_refused_before_any_token(key):
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode() if key else "garbage"

    with pytest.raises(PublicKeyInvalid):
        Es256Verifier(pem, issuer=ISSUER, audience=AUDIENCE)
