"""Selection of keys from JWKS documents and rejection of invalid documents."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from infrastructure.identity.keys import KeySetInvalid, read_jwks
from tests.support.token_forge import KID, encoded, new_key, public_jwk, rsa_key

EC_JWK = public_jwk(new_key("ES256"), "ES256")
OTHER_JWK = public_jwk(new_key("ES256"), "ES256")
BAD_DOCUMENTS = {
    "nothing": b"",
    "no json": b"<html>",
    "cut off": b'{"keys": [',
    "a list": b"[]",
    "null": b"null",
    "no keys": b"{}",
    "keys are an object": b'{"keys": {}}',
    "keys are null": b'{"keys": null}',
    "no utf-8": b'{"keys": ["\xff"]}',
    "nested deep": b'{"keys": ' + b"[" * 30_000,
    "one kid, two keys": json.dumps({"keys": [EC_JWK, OTHER_JWK]}).encode(),
    "one kid, one key twice": json.dumps({"keys": [EC_JWK, EC_JWK]}).encode(),
}


@pytest.mark.parametrize("document", BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS.keys())
def test_invalid_document_raises_key_set_invalid(document):
    with pytest.raises(KeySetInvalid):
        read_jwks(document, "ES256")


def off_the_curve():
    return public_jwk(new_key("ES256"), "ES256", y=encoded(b"\1" * 32))


P384 = ec.generate_private_key(ec.SECP384R1())
UNUSABLE = {
    "a number": 1,
    "text": "key",
    "a list": [],
    "nothing": {},
    "rsa": public_jwk(new_key("RS256"), "RS256"),
    "another curve": public_jwk(P384, "ES384", alg="ES256"),
    "another curve under our name": public_jwk(P384, "ES384", alg="ES256", crv="P-256"),
    "a secret": {"kty": "oct", "k": encoded(b"k" * 32), "kid": "x"},
    "a secret under our alg": {"kty": "oct", "k": encoded(b"k" * 32), "kid": "x", "alg": "ES256"},
    "for encryption": public_jwk(new_key("ES256"), "ES256", use="enc"),
    "for signing only": public_jwk(new_key("ES256"), "ES256", key_ops=["sign"]),
    "of another alg": public_jwk(new_key("ES256"), "ES256", alg="ES384"),
    "a private key": public_jwk(new_key("ES256"), "ES256", d=encoded(b"d" * 32)),
    "off the curve": off_the_curve(),
    "a short coordinate": public_jwk(new_key("ES256"), "ES256", x=encoded(b"x" * 31)),
    "no coordinate": public_jwk(new_key("ES256"), "ES256", x=None),
    "no base64": public_jwk(new_key("ES256"), "ES256", x="!!!"),
    "coordinates beyond ascii": public_jwk(new_key("ES256"), "ES256", x="\u0663" * 43),
    "a kid that is a number": public_jwk(new_key("ES256"), "ES256", kid=1),
    "a kty that is a list": public_jwk(new_key("ES256"), "ES256", kty=["EC"]),
    "nested deep": {"kty": "EC", "key_ops": json.loads("[" * 300 + "]" * 300)},
}


@pytest.mark.parametrize("jwk", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_unsuitable_key_is_skipped(jwk):
    document = json.dumps({"keys": [jwk, {**EC_JWK, "kid": "good"}]}).encode()

    assert list(read_jwks(document, "ES256")) == ["good"]


@pytest.mark.parametrize(("bits", "kids"), [(1_024, []), (2_048, [KID]), (3_072, [KID])])
def test_rsa_key_below_2048_bits_is_skipped(bits, kids):
    document = json.dumps({"keys": [public_jwk(rsa_key(bits), "RS256")]}).encode()

    assert list(read_jwks(document, "RS256")) == kids


@pytest.mark.parametrize("e", [b"\0", b"\1", b"\2"])
def test_rsa_key_with_weak_exponent_is_skipped(e):
    document = json.dumps({"keys": [public_jwk(rsa_key(2_048), "RS256", e=encoded(e))]}).encode()

    assert read_jwks(document, "RS256") == {}


def test_very_large_rsa_key_is_skipped():
    jwk = public_jwk(rsa_key(2_048), "RS256", n=encoded(b"\xff" * 4_000))

    assert read_jwks(json.dumps({"keys": [jwk]}).encode(), "RS256") == {}


@pytest.mark.parametrize(
    "changes", [{}, {"use": None}, {"alg": None}, {"key_ops": None}, {"kid": None}], ids=str
)
def test_optional_fields_of_a_key_may_be_absent(changes):
    document = json.dumps({"keys": [{**public_jwk(new_key("ES256"), "ES256", **changes)}], "x": 1}).encode()

    assert list(read_jwks(document, "ES256")) == [changes.get("kid", KID)]


def test_two_keys_without_kid_raise_key_set_invalid():
    jwks = [public_jwk(new_key("ES256"), "ES256", kid=None) for _ in range(2)]

    with pytest.raises(KeySetInvalid):
        read_jwks(json.dumps({"keys": jwks}).encode(), "ES256")
