"""Conversion of API keys to identify, with a lookup that counts its calls."""

import uuid
from datetime import timedelta

import msgspec
import pytest

from features.auth.application.ports import StoredApiKey
from features.auth.domain.api_keys import ApiKey, issue
from features.auth.domain.errors import ApiKeyInvalid
from tests.support import NOON
from tests.unit.features.auth.conftest import USER_ID


@pytest.fixture
def issued(key_ring):
    """A key that the lookup finds."""
    issued = issue(uuid.uuid4(), "live")
    key_ring.known[issued.id] = StoredApiKey(key=api_key(issued.id), secret_hash=issued.secret_hash)
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


async def test_api_key_is_a_principal_of_its_own(identify, key_ring, issued):
    caller = await identify(f"Bearer {issued.text}")

    key = key_ring.known[issued.id].key
    assert (caller.kind, caller.id, caller.chosen_account) == ("api_key", key.id, key.account_id)
    assert (caller.scopes, caller.project, caller.is_test) == ({"credits:read"}, "proj_1", False)
    assert msgspec.json.decode(caller.claims) == {"role": "authenticated", "api_key_id": str(key.id)}
    assert not caller.is_operator


@pytest.mark.parametrize("position", [9, 20, 31, 50, -1])
async def test_mistyped_key_costs_no_query(identify, key_ring, issued, position):
    text = list(issued.text)
    text[position] = "1" if text[position] != "1" else "2"

    with pytest.raises(ApiKeyInvalid):
        await identify("Bearer " + "".join(text))
    assert key_ring.asked == []


async def test_wrong_secret_with_a_known_id_is_rejected(identify, issued):
    guess = issue(issued.id, "live")

    with pytest.raises(ApiKeyInvalid):
        await identify(f"Bearer {guess.text}")


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
async def test_invalid_key_or_key_of_another_mode_is_rejected(identify, key_ring, issued, changes):
    key_ring.known[issued.id] = StoredApiKey(
        key=api_key(issued.id, **changes), secret_hash=issued.secret_hash
    )

    with pytest.raises(ApiKeyInvalid):
        await identify(f"Bearer {issued.text}")


async def test_unknown_key_and_wrong_secret_get_the_same_error(identify, issued):
    stranger = issue(uuid.uuid4(), "live")
    wrong = issue(issued.id, "live")

    refusals = []
    for key in (stranger, wrong):
        with pytest.raises(ApiKeyInvalid) as refusal:
            await identify(f"Bearer {key.text}")
        refusals.append(str(refusal.value))

    assert refusals[0] == refusals[1]


async def test_revoked_key_is_rejected_within_five_seconds(identify, key_ring, clock, issued):
    await identify(f"Bearer {issued.text}")
    revoked = api_key(issued.id, revoked_at=clock.now)
    key_ring.known[issued.id] = StoredApiKey(key=revoked, secret_hash=issued.secret_hash)

    clock.now += timedelta(seconds=4)
    with pytest.raises(ApiKeyInvalid):
        await identify(f"Bearer {issued.text}")


async def test_key_is_cached_for_seconds_and_its_use_recorded(identify, key_ring, clock, issued):
    for _ in range(100):
        await identify(f"Bearer {issued.text}")
    clock.now += timedelta(seconds=5)
    await identify(f"Bearer {issued.text}")

    assert key_ring.asked == [issued.id] * 2
    assert key_ring.uses == [(issued.id, NOON), (issued.id, clock.now)]


async def test_key_is_not_cached_beyond_its_expiry(identify, key_ring, clock, issued):
    soon = api_key(issued.id, expires_at=NOON + timedelta(seconds=1))
    key_ring.known[issued.id] = StoredApiKey(key=soon, secret_hash=issued.secret_hash)
    await identify(f"Bearer {issued.text}")

    clock.now += timedelta(seconds=1)
    with pytest.raises(ApiKeyInvalid):
        await identify(f"Bearer {issued.text}")
