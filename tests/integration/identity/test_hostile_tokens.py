"""Rejection of every token that is not a current token of our issuer for a signed-in user.

Every token is tested with three issuers: ES256 and RS256 with keys from a JWKS URL, HS256 with a shared
secret.
"""

import pytest

from features.auth.domain.claims import read_claims
from features.auth.domain.errors import TokenAnonymous, TokenExpired, TokenInvalid
from infrastructure.identity.jwks import JwksKeys
from infrastructure.identity.keys import FixedKey
from infrastructure.identity.verifier import JwtVerifier
from shared.errors import Unauthenticated
from tests.support.hostile_tokens import (
    CLAIMS,
    FORGED,
    HEADERS,
    KIDS,
    MANGLED,
    PAYLOADS,
    RAW_HEADERS,
    SPELLINGS,
)
from tests.support.jwks_server import key_server
from tests.support.token_forge import AUDIENCE, ISSUER, KID, NOW_S, Smith, claims_with, encoded, public_jwk


@pytest.fixture(scope="module", params=["ES256", "RS256", "HS256"])
def smith(request):
    return Smith(request.param)


@pytest.fixture(scope="module")
async def issuer():
    async with key_server() as issuer:
        yield issuer


@pytest.fixture(scope="module")
async def verifier(smith, issuer):
    if smith.algorithm == "HS256":
        keys = FixedKey(smith.key)
    else:
        issuer.publish(public_jwk(smith.key, smith.algorithm))
        keys = JwksKeys(issuer.url, smith.algorithm)
    yield JwtVerifier(keys, algorithm=smith.algorithm, issuer=ISSUER, audience=AUDIENCE, now_s=lambda: NOW_S)
    if isinstance(keys, JwksKeys):
        await keys.close()


@pytest.fixture
def identify(verifier):
    """Returns a function that authenticates a token with all checks."""

    async def identify(token):
        return read_claims(await verifier.verify(token))[0]

    return identify


async def test_genuine_token_is_accepted(identify, smith):
    claims = await identify(smith.token())

    assert claims.email == "ada@example.com"


@pytest.fixture
def refused(identify):
    """Returns a function that returns the rejection of a token. Any other result fails the test."""

    async def refused(token):
        with pytest.raises(Unauthenticated) as refusal:
            await identify(token)
        return refusal.value

    return refused


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
async def test_token_of_another_issuer_is_rejected(refused, smith, forge):
    assert isinstance(await refused(forge(smith)), TokenInvalid)


@pytest.mark.parametrize("mangle", MANGLED.values(), ids=MANGLED.keys())
async def test_modified_encoding_of_a_genuine_token_is_rejected(refused, smith, mangle):
    assert isinstance(await refused(mangle(smith.token())), TokenInvalid)


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS.keys())
async def test_genuine_token_with_unsupported_header_is_rejected(refused, smith, header):
    assert isinstance(await refused(smith.token(header)), TokenInvalid)


@pytest.mark.parametrize("kid", KIDS, ids=lambda kid: ascii(kid)[:30])
async def test_kid_selects_only_keys_of_the_issuer(refused, smith, kid):
    # A shared secret has no kid, so for HS256 a forged token is used.
    token = smith.forged({"kid": kid}) if smith.algorithm == "HS256" else smith.token({"kid": kid})

    assert isinstance(await refused(token), TokenInvalid)


@pytest.mark.parametrize("claims", CLAIMS, ids=lambda claims: ascii(claims)[:40])
async def test_genuine_token_with_wrong_claims_is_rejected(refused, smith, claims):
    assert await refused(smith.token(claims=claims_with(**claims)))


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
async def test_genuine_signature_over_an_invalid_payload_is_rejected(refused, smith, payload):
    header = encoded({"alg": smith.algorithm, "kid": KID})

    assert isinstance(await refused(smith.over(header, encoded(payload))), TokenInvalid)


@pytest.mark.parametrize("header", RAW_HEADERS.values(), ids=RAW_HEADERS.keys())
async def test_genuine_signature_with_an_invalid_header_is_rejected(refused, smith, header):
    header = encoded(header.replace(b"%s", smith.algorithm.encode()))

    assert isinstance(await refused(smith.over(header, encoded(claims_with()))), TokenInvalid)


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS.keys())
async def test_genuine_signature_over_invalid_base64_is_rejected(refused, smith, spell):
    header, payload = spell(encoded({"alg": smith.algorithm, "kid": KID}), encoded(claims_with()))

    assert isinstance(await refused(smith.over(header, payload)), TokenInvalid)


async def test_nested_token_is_rejected(refused, smith):
    header = encoded({"alg": smith.algorithm, "kid": KID, "cty": "JWT"})

    assert isinstance(await refused(smith.over(header, encoded(smith.token().encode()))), TokenInvalid)


async def test_anonymous_user_must_sign_in(refused, smith):
    refusal = await refused(smith.token(claims=claims_with(is_anonymous=True)))

    assert isinstance(refusal, TokenAnonymous)
    assert (refusal.code, "e-mail address" in str(refusal)) == ("token_anonymous", True)


@pytest.mark.parametrize("exp", [NOW_S - 31, NOW_S - 30, NOW_S - 3_600, 0, -1])
async def test_expired_token_raises_token_expired(refused, smith, exp):
    assert isinstance(await refused(smith.token(claims=claims_with(exp=exp))), TokenExpired)


async def test_expired_forged_token_raises_token_invalid(refused, smith):
    assert isinstance(await refused(smith.forged(claims=claims_with(exp=1))), TokenInvalid)


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": NOW_S - 29},
        {"nbf": NOW_S + 29},
        {"iat": NOW_S + 29},
        {"nbf": NOW_S - 3_600},
        {"iat": NOW_S - 0.5},
        {"aud": ["another", AUDIENCE]},
        {"email": None},
        {"is_anonymous": None},
    ],
    ids=str,
)
async def test_valid_variants_of_claims_are_accepted(identify, smith, claims):
    token = smith.token(claims=claims_with(**claims))

    assert (await identify(token)).role == "authenticated"


@pytest.mark.parametrize("header", [{"typ": None}, {"typ": "jwt"}, {"typ": "at+jwt"}, {"kid": None}], ids=str)
async def test_valid_variants_of_headers_are_accepted(identify, smith, header):
    assert (await identify(smith.token(header))).role == "authenticated"


async def test_urls_in_headers_are_never_requested(refused, smith):
    async with key_server() as strangers:
        strangers.publish(smith.strangers_jwk)
        url = strangers.url
        await refused(smith.forged({"jku": url, "x5u": url, "kid": url, "iss": url}))

    assert strangers.paths == []
