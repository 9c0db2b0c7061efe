"""From a header to a caller, with a verifier and a sign-up desk that count how often they are asked."""

import uuid
from datetime import timedelta

import msgspec
import pytest

from features.auth.application import callers as callers_module
from features.auth.application.callers import Callers
from features.auth.application.ports import KnownKey
from features.auth.domain.api_keys import ApiKey, issue
from features.auth.domain.errors import ApiKeyInvalid, TokenInvalid
from tests.support import NOON

USER_ID = uuid.UUID("7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11")


class Verifier:
    """Accepts every token and says of each what ``claims`` says."""

    generation = 0

    def __init__(self):
        self.tokens = []
        self.claims = {
            "sub": str(USER_ID),
            "role": "authenticated",
            "exp": int((NOON + timedelta(hours=1)).timestamp()),
        }

    async def verify(self, token):
        self.tokens.append(token)
        return self.claims


class SignUps:
    def __init__(self):
        self.seen = []

    async def first_sight(self, user_id, *, email, account_name, bonus_credits):
        self.seen.append((user_id, email, account_name, bonus_credits))


class KeyRing:
    def __init__(self):
        self.known = {}
        self.asked = []
        self.uses = []

    async def find(self, key_id):
        self.asked.append(key_id)
        return self.known.get(key_id)

    def note_use(self, key, at):
        self.uses.append((key.id, at))


class Clock:
    now = NOON

    def __call__(self):
        return self.now


@pytest.fixture
def verifier():
    return Verifier()


@pytest.fixture
def sign_ups():
    return SignUps()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def key_ring():
    return KeyRing()


@pytest.fixture
def callers(verifier, sign_ups, key_ring, clock):
    return Callers(verifier, sign_ups, key_ring, 25, clock)


async def test_the_caller_is_the_tokens_subject_with_the_claims_as_they_came(callers, verifier):
    verifier.claims["aal"] = "aal2"

    caller = await callers.identify("Bearer t")

    assert (caller.user_id, caller.is_operator, caller.chosen_account) == (USER_ID, False, None)
    assert msgspec.json.decode(caller.claims) == verifier.claims


@pytest.mark.parametrize(("seconds", "verifications"), [(0, 1), (60, 1), (3_599, 1), (3_600, 2)])
async def test_a_verified_token_is_remembered_until_it_expires(
    callers, verifier, clock, seconds, verifications
):
    first = await callers.identify("Bearer t")
    clock.now += timedelta(seconds=seconds)

    second = await callers.identify("Bearer t")

    assert first == second
    assert len(verifier.tokens) == verifications


@pytest.mark.parametrize(("seconds", "verifications"), [(19, 1), (20, 2)])
async def test_nothing_is_remembered_beyond_its_expiry(callers, verifier, clock, seconds, verifications):
    verifier.claims["exp"] = int((NOON + timedelta(seconds=20)).timestamp())
    await callers.identify("Bearer t")

    clock.now += timedelta(seconds=seconds)
    await callers.identify("Bearer t")

    assert len(verifier.tokens) == verifications


async def test_the_bonus_is_asked_for_once_per_verification(callers, sign_ups, clock):
    await callers.identify("Bearer t")
    await callers.identify("Bearer t")
    clock.now += timedelta(hours=1)
    await callers.identify("Bearer t")

    assert sign_ups.seen == [(USER_ID, "", "My account", 25)] * 2


async def test_two_tokens_are_two_memories(callers, verifier):
    await callers.identify("Bearer one")
    verifier.claims = {**verifier.claims, "sub": str(uuid.uuid4())}

    other = await callers.identify("Bearer two")

    assert verifier.tokens == ["one", "two"]
    assert other.user_id != USER_ID


async def test_the_memory_is_bounded_and_forgets_the_oldest(callers, verifier, monkeypatch):
    monkeypatch.setattr(callers_module, "REMEMBERED_MAX", 3)
    for number in range(4):
        await callers.identify(f"Bearer {number}")
    verifier.tokens.clear()

    for number in (3, 2, 1, 0):
        await callers.identify(f"Bearer {number}")

    assert verifier.tokens == ["0"]


@pytest.mark.parametrize("authorization", ["Bearer t", "bearer t", "BEARER t", "bEaReR  t "])
async def test_the_scheme_is_read_in_any_case(callers, verifier, authorization):
    await callers.identify(authorization)

    assert verifier.tokens == ["t"]


@pytest.mark.parametrize(
    "authorization", ["", "t", "Basic dTpw", "Bearer", "Bearert", " Bearer t", "Token t"]
)
async def test_another_scheme_or_none_is_refused_without_verification(callers, verifier, authorization):
    with pytest.raises(TokenInvalid):
        await callers.identify(authorization)

    assert verifier.tokens == []


@pytest.mark.parametrize(("length", "verifications"), [(8_192, 1), (8_193, 0), (1_000_000, 0)])
async def test_a_header_of_more_than_8_kilobytes_is_not_even_verified(
    callers, verifier, length, verifications
):
    authorization = "Bearer ".ljust(length, "x")

    if verifications:
        await callers.identify(authorization)
    else:
        with pytest.raises(TokenInvalid):
            await callers.identify(authorization)

    assert len(verifier.tokens) == verifications


async def test_a_refused_token_is_not_remembered(callers, verifier, sign_ups):
    verifier.claims["role"] = "anon"
    with pytest.raises(TokenInvalid):
        await callers.identify("Bearer t")

    verifier.claims["role"] = "authenticated"
    await callers.identify("Bearer t")

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
async def test_only_what_the_identity_service_writes_makes_an_operator(
    callers, verifier, claims, is_operator
):
    verifier.claims |= claims

    caller = await callers.identify("Bearer t")

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
async def test_an_account_is_named_after_the_address_and_not_endlessly(
    callers, verifier, sign_ups, claims, name
):
    verifier.claims |= claims

    await callers.identify("Bearer t")

    assert [(user, account) for user, _, account, _ in sign_ups.seen] == [(USER_ID, name)]


@pytest.fixture
def issued(key_ring):
    """A key that the ring knows."""
    issued = issue(uuid.uuid4(), "live")
    key_ring.known[issued.id] = KnownKey(key=api_key(issued.id), secret_hash=issued.secret_hash)
    return issued


def api_key(key_id, **changes):
    values = {
        "account_id": uuid.uuid4(),
        "id": key_id,
        "family_id": key_id,
        "name": "k",
        "mode": "live",
        "scopes": ["credits:read"],
        "project": "proj_1",
        "credits_per_month_max": None,
        "expires_at": None,
        "revoked_at": None,
        "last_used_at": None,
        "created_by": USER_ID,
        "created_at": NOON,
    }
    return ApiKey(**{**values, **changes})


async def test_a_key_is_a_principal_of_its_own(callers, key_ring, issued):
    caller = await callers.identify(f"Bearer {issued.text}")

    key = key_ring.known[issued.id].key
    assert (caller.kind, caller.id, caller.chosen_account) == ("api_key", key.id, key.account_id)
    assert (caller.scopes, caller.project, caller.is_test) == ({"credits:read"}, "proj_1", False)
    assert msgspec.json.decode(caller.claims) == {"role": "authenticated", "api_key_id": str(key.id)}
    assert not caller.is_operator


@pytest.mark.parametrize("position", [9, 20, 31, 50, -1])
async def test_a_mistyped_key_costs_no_query(callers, key_ring, issued, position):
    text = list(issued.text)
    text[position] = "1" if text[position] != "1" else "2"

    with pytest.raises(ApiKeyInvalid):
        await callers.identify("Bearer " + "".join(text))
    assert key_ring.asked == []


async def test_a_wrong_secret_under_a_known_id_is_refused(callers, issued):
    guess = issue(issued.id, "live")

    with pytest.raises(ApiKeyInvalid):
        await callers.identify(f"Bearer {guess.text}")


@pytest.mark.parametrize(
    "changes",
    [
        {"revoked_at": NOON},
        {"revoked_at": NOON + timedelta(days=1)},
        {"expires_at": NOON},
        {"expires_at": NOON - timedelta(days=1)},
        {"mode": "test"},
    ],
    ids=str,
)
async def test_a_key_that_is_over_or_of_another_mode_is_refused(callers, key_ring, issued, changes):
    key_ring.known[issued.id] = KnownKey(key=api_key(issued.id, **changes), secret_hash=issued.secret_hash)

    with pytest.raises(ApiKeyInvalid):
        await callers.identify(f"Bearer {issued.text}")


async def test_an_unknown_key_is_refused_as_a_wrong_one_is(callers, issued):
    stranger = issue(uuid.uuid4(), "live")
    wrong = issue(issued.id, "live")

    refusals = []
    for key in (stranger, wrong):
        with pytest.raises(ApiKeyInvalid) as refusal:
            await callers.identify(f"Bearer {key.text}")
        refusals.append(str(refusal.value))

    assert refusals[0] == refusals[1]


@pytest.mark.parametrize(("seconds", "is_refused"), [(4.9, False), (5, True)])
async def test_a_revoked_key_is_refused_within_five_seconds(
    callers, key_ring, clock, issued, seconds, is_refused
):
    await callers.identify(f"Bearer {issued.text}")
    revoked = api_key(issued.id, revoked_at=clock.now)
    key_ring.known[issued.id] = KnownKey(key=revoked, secret_hash=issued.secret_hash)

    clock.now += timedelta(seconds=seconds)
    if is_refused:
        with pytest.raises(ApiKeyInvalid):
            await callers.identify(f"Bearer {issued.text}")
    assert len(key_ring.asked) <= 2


async def test_a_key_is_looked_up_once_in_a_while_and_its_use_noted(callers, key_ring, clock, issued):
    for _ in range(100):
        await callers.identify(f"Bearer {issued.text}")
    clock.now += timedelta(seconds=5)
    await callers.identify(f"Bearer {issued.text}")

    assert key_ring.asked == [issued.id] * 2
    assert key_ring.uses == [(issued.id, NOON), (issued.id, clock.now)]


async def test_a_key_is_not_remembered_beyond_its_expiry(callers, key_ring, clock, issued):
    soon = api_key(issued.id, expires_at=NOON + timedelta(seconds=1))
    key_ring.known[issued.id] = KnownKey(key=soon, secret_hash=issued.secret_hash)
    await callers.identify(f"Bearer {issued.text}")

    clock.now += timedelta(seconds=1)
    with pytest.raises(ApiKeyInvalid):
        await callers.identify(f"Bearer {issued.text}")


async def test_a_withdrawn_signing_key_makes_everything_be_verified_anew(callers, verifier):
    await callers.identify("Bearer t")
    verifier.generation += 1
    await callers.identify("Bearer t")
    await callers.identify("Bearer t")

    assert len(verifier.tokens) == 2
