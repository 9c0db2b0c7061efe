"""Conversion of access tokens to identify, with fakes that count their calls."""

import uuid
from datetime import timedelta

import msgspec
import pytest

from features.auth.domain.errors import TokenInvalid
from tests.support import NOON
from tests.unit.features.auth.conftest import USER_ID


async def test_caller_is_the_tokens_subject_and_its_claims_are_sub_and_role(identify, verifier):
    verifier.claims["api_key_id"] = str(uuid.uuid4())

    caller = await identify("Bearer t")

    assert (caller.user_id, caller.is_operator, caller.chosen_account) == (USER_ID, False, None)
    assert msgspec.json.decode(caller.claims) == {"sub": str(USER_ID), "role": "authenticated"}


@pytest.mark.parametrize(("seconds", "verifications"), [(0, 1), (59, 1), (60, 2)])
async def test_verified_token_is_cached_for_a_minute(identify, verifier, clock, seconds, verifications):
    first = await identify("Bearer t")
    clock.now += timedelta(seconds=seconds)

    second = await identify("Bearer t")

    assert first == second
    assert len(verifier.tokens) == verifications


@pytest.mark.parametrize(("seconds", "verifications"), [(19, 1), (20, 2)])
async def test_token_is_not_cached_beyond_its_expiry(identify, verifier, clock, seconds, verifications):
    verifier.claims["exp"] = int((NOON + timedelta(seconds=20)).timestamp())
    await identify("Bearer t")

    clock.now += timedelta(seconds=seconds)
    await identify("Bearer t")

    assert len(verifier.tokens) == verifications


async def test_sign_up_is_called_once_per_verification(identify, sign_ups, clock):
    await identify("Bearer t")
    await identify("Bearer t")
    clock.now += timedelta(minutes=1)
    await identify("Bearer t")

    assert sign_ups.seen == [(USER_ID, "", "My account", 25)] * 2


async def test_tokens_are_cached_separately(identify, verifier):
    await identify("Bearer one")
    verifier.claims = {**verifier.claims, "sub": str(uuid.uuid4())}

    other = await identify("Bearer two")

    assert verifier.tokens == ["one", "two"]
    assert other.user_id != USER_ID


@pytest.mark.parametrize("authorization", ["Bearer t", "bearer t", "BEARER t", "bEaReR  t "])
async def test_scheme_is_case_insensitive(identify, verifier, authorization):
    await identify(authorization)

    assert verifier.tokens == ["t"]


@pytest.mark.parametrize(
    "authorization", ["", "t", "Basic dTpw", "Bearer", "Bearert", " Bearer t", "Token t"]
)
async def test_other_or_missing_scheme_is_rejected_without_verification(identify, verifier, authorization):
    with pytest.raises(TokenInvalid):
        await identify(authorization)

    assert verifier.tokens == []


@pytest.mark.parametrize(("length", "verifications"), [(8_192, 1), (8_193, 0), (1_000_000, 0)])
async def test_header_above_8_kilobytes_is_rejected_without_verification(
    identify, verifier, length, verifications
):
    authorization = "Bearer ".ljust(length, "x")

    if verifications:
        await identify(authorization)
    else:
        with pytest.raises(TokenInvalid):
            await identify(authorization)

    assert len(verifier.tokens) == verifications


async def test_rejected_token_is_not_cached(identify, verifier, sign_ups):
    verifier.claims["role"] = "anon"
    with pytest.raises(TokenInvalid):
        await identify("Bearer t")

    verifier.claims["role"] = "authenticated"
    await identify("Bearer t")

    assert len(verifier.tokens) == 2
    assert len(sign_ups.seen) == 1


@pytest.mark.parametrize(
    ("claims", "is_operator"),
    [
        ({"app_metadata": {"oslira_role": "operator"}}, True),
        ({"app_metadata": {"oslira_role": "Operator"}}, False),
        ({"app_metadata": {"oslira_role": ["operator"]}}, False),
        ({"app_metadata": {"oslira_role": True}}, False),
        ({"app_metadata": {"role": "operator"}}, False),
        ({"app_metadata": {}, "user_metadata": {"oslira_role": "operator"}}, False),
        ({"oslira_role": "operator"}, False),
        ({}, False),
    ],
)
async def test_only_app_metadata_makes_an_operator(identify, verifier, claims, is_operator):
    verifier.claims |= claims

    caller = await identify("Bearer t")

    assert caller.is_operator is is_operator


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"email": "ada@example.com"}, "ada"),
        ({"email": "ada"}, "ada"),
        ({"email": "@example.com"}, "My account"),
        ({"email": ""}, "My account"),
        ({}, "My account"),
        ({"email": "a" * 300 + "@example.com"}, "a" * 200),
    ],
)
async def test_account_is_named_after_the_address_up_to_200_characters(
    identify, verifier, sign_ups, claims, name
):
    verifier.claims |= claims

    await identify("Bearer t")

    assert [(user, account) for user, _, account, _ in sign_ups.seen] == [(USER_ID, name)]


async def test_withdrawn_signing_key_invalidates_the_cache(identify, verifier):
    await identify("Bearer t")
    verifier.generation += 1
    await identify("Bearer t")
    await identify("Bearer t")

    assert len(verifier.tokens) == 2
