"""Nothing gets past the check that is not a current token of our issuer, for a signed-in user of ours.

Every token here is tried against three issuers: ES256 and RS256 with keys from a JWKS address, HS256
with a shared secret.
"""

import pytest

from features.auth.domain.claims import read_claims
from features.auth.domain.errors import TokenAnonymous, TokenExpired, TokenInvalid
from infrastructure.identity.jwks import JwksKeys
from infrastructure.identity.keys import FixedKey
from infrastructure.identity.verifier import JwtVerifier
from shared.errors import Unauthenticated
from tests.infrastructure.hostile_tokens import (
    CLAIMS,
    FORGED,
    HEADERS,
    KIDS,
    MANGLED,
    PAYLOADS,
    RAW_HEADERS,
    SPELLINGS,
)
from tests.infrastructure.key_server import key_server
from tests.infrastructure.smith import AUDIENCE, ISSUER, KID, NOW_S, Smith, claims_with, encoded, public_jwk


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
    """A function: everything that stands between a token and a caller."""

    async def identify(token):
        return read_claims(await verifier.verify(token))[0]

    return identify


async def test_the_token_that_all_others_are_made_from_is_accepted(identify, smith):
    claims = await identify(smith.token())

    assert claims.email == "ada@example.com"


@pytest.fixture
def refused(identify):
    """A function: the refusal of a token. Anything else than a refusal fails the test."""

    async def refused(token):
        with pytest.raises(Unauthenticated) as refusal:
            await identify(token)
        return refusal.value

    return refused


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
async def test_a_token_that_our_issuer_did_not_sign_is_refused(refused, smith, forge):
    assert isinstance(await refused(forge(smith)), TokenInvalid)


@pytest.mark.parametrize("mangle", MANGLED.values(), ids=MANGLED.keys())
async def test_a_genuine_token_that_was_written_differently_is_refused(refused, smith, mangle):
    assert isinstance(await refused(mangle(smith.token())), TokenInvalid)


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS.keys())
async def test_a_genuine_token_whose_header_asks_for_what_we_do_not_do_is_refused(refused, smith, header):
    assert isinstance(await refused(smith.token(header)), TokenInvalid)


@pytest.mark.parametrize("kid", KIDS, ids=lambda kid: ascii(kid)[:30])
async def test_a_kid_chooses_among_the_issuers_keys_and_nothing_else(refused, smith, kid):
    # A shared secret has no name: there a kid chooses nothing, and a stranger's token stays false.
    token = smith.forged({"kid": kid}) if smith.algorithm == "HS256" else smith.token({"kid": kid})

    assert isinstance(await refused(token), TokenInvalid)


@pytest.mark.parametrize("claims", CLAIMS, ids=lambda claims: ascii(claims)[:40])
async def test_a_genuine_token_with_wrong_claims_is_refused(refused, smith, claims):
    assert await refused(smith.token(claims=claims_with(**claims)))


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
async def test_a_genuine_signature_over_something_else_is_refused(refused, smith, payload):
    header = encoded({"alg": smith.algorithm, "kid": KID})

    assert isinstance(await refused(smith.over(header, encoded(payload))), TokenInvalid)


@pytest.mark.parametrize("header", RAW_HEADERS.values(), ids=RAW_HEADERS.keys())
async def test_a_genuine_signature_under_a_header_that_is_none_is_refused(refused, smith, header):
    header = encoded(header.replace(b"%s", smith.algorithm.encode()))

    assert isinstance(await refused(smith.over(header, encoded(claims_with()))), TokenInvalid)


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS.keys())
async def test_a_genuine_signature_over_texts_that_are_no_base64_is_refused(refused, smith, spell):
    header, payload = spell(encoded({"alg": smith.algorithm, "kid": KID}), encoded(claims_with()))

    assert isinstance(await refused(smith.over(header, payload)), TokenInvalid)


async def test_a_genuine_token_inside_a_genuine_signature_is_refused(refused, smith):
    header = encoded({"alg": smith.algorithm, "kid": KID, "cty": "JWT"})

    assert isinstance(await refused(smith.over(header, encoded(smith.token().encode()))), TokenInvalid)


async def test_an_anonymous_user_is_told_to_sign_in(refused, smith):
    refusal = await refused(smith.token(claims=claims_with(is_anonymous=True)))

    assert isinstance(refusal, TokenAnonymous)
    assert (refusal.code, "e-mail address" in str(refusal)) == ("token_anonymous", True)


@pytest.mark.parametrize("exp", [NOW_S - 31, NOW_S - 30, NOW_S - 3_600, 0, -1])
async def test_a_token_whose_time_is_over_is_told_apart_from_a_false_one(refused, smith, exp):
    assert isinstance(await refused(smith.token(claims=claims_with(exp=exp))), TokenExpired)


async def test_a_false_token_is_not_told_that_it_has_expired(refused, smith):
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
async def test_what_honest_issuers_do_is_accepted(identify, smith, claims):
    token = smith.token(claims=claims_with(**claims))

    assert (await identify(token)).role == "authenticated"


@pytest.mark.parametrize("header", [{"typ": None}, {"typ": "jwt"}, {"typ": "at+jwt"}, {"kid": None}], ids=str)
async def test_headers_of_honest_issuers_are_accepted(identify, smith, header):
    assert (await identify(smith.token(header))).role == "authenticated"


async def test_no_address_in_a_header_is_ever_asked(refused, smith):
    async with key_server() as strangers:
        strangers.publish(smith.strangers_jwk)
        url = strangers.url
        await refused(smith.forged({"jku": url, "x5u": url, "kid": url, "iss": url}))

    assert strangers.paths == []
