"""Claims of a verified token."""

import msgspec
import pytest

from features.auth.domain.claims import caller_of, read_claims
from features.auth.domain.errors import TokenAnonymous

CLAIMS = {"sub": "7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11", "role": "authenticated", "exp": 1_800_000_000}


@pytest.mark.parametrize(
    ("claims", "email"),
    [
        ({"email": "Ada@Example.COM"}, "ada@example.com"),
        ({"email": " ada@example.com\n"}, "ada@example.com"),
        ({"email": ""}, ""),
        ({}, ""),
    ],
)
def test_email_is_normalized(claims, email):
    assert caller_of(*read_claims({**CLAIMS, **claims})).email == email


@pytest.mark.parametrize(
    "claims",
    [
        {"api_key_id": "0b6bd2b4-65d3-4f5c-a5b3-2f6f2a9d8c11"},
        {"app_metadata": {"oslira_role": "operator"}, "email": "ada@example.com"},
        {"sub": CLAIMS["sub"].upper()},
    ],
)
def test_database_claims_are_subject_and_role_only(claims):
    caller = caller_of(*read_claims({**CLAIMS, **claims}))

    assert msgspec.json.decode(caller.claims) == {"sub": CLAIMS["sub"], "role": "authenticated"}


def test_anonymous_token_is_rejected():
    with pytest.raises(TokenAnonymous):
        read_claims({**CLAIMS, "is_anonymous": True})
