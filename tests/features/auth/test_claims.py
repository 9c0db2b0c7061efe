"""What verified claims say about a caller."""

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
def test_addresses_are_compared_in_one_spelling_while_the_claims_stay_as_they_came(claims, email):
    caller = caller_of(*read_claims({**CLAIMS, **claims}))

    assert caller.email == email
    assert msgspec.json.decode(caller.claims) == {**CLAIMS, **claims}


def test_an_anonymous_sign_in_is_no_caller():
    with pytest.raises(TokenAnonymous):
        read_claims({**CLAIMS, "is_anonymous": True})
