"""API keys with fakes behind their ports."""

import uuid
from datetime import timedelta

import pytest
from msgspec.structs import replace

from features.auth.application.api_keys import VALID_MAX
from features.auth.application.ports import KeySettings
from features.auth.domain.api_keys import LIFETIME_MAX, read_key
from features.auth.domain.errors import (
    ApiKeyEnded,
    ApiKeyNotFound,
    ExpiryInvalid,
    NameInvalid,
    PermissionMissing,
    TooManyApiKeys,
)
from shared.caller import AccountNotChosen, AccountNotFound
from tests.fakes.auth import ACCOUNT, STRANGER, USERS, caller_as
from tests.support import NOON

OWNER, ADMIN = caller_as(USERS["owner"]), caller_as(USERS["admin"])
ELSEWHERE = caller_as(USERS["owner"], account_id=uuid.UUID(int=2))
KEY, NEW = uuid.UUID(int=5), uuid.UUID(int=6)
HOUR = timedelta(hours=1)
SETTINGS = KeySettings(
    name=" Nightly  import ",
    scopes=["runs:write", "credits:read", "runs:write"],
    project="proj_1",
    credits_per_month_max=7,
    expires_at=None,
)


@pytest.fixture
async def key(api_keys):
    return (await api_keys.create(OWNER, KEY, "live", SETTINGS)).key


async def test_new_key_is_stored_with_the_hash_of_its_secret(api_keys, store):
    created = await api_keys.create(OWNER, KEY, "live", SETTINGS)

    stored = store.keys[KEY]
    assert stored.secret_hash == read_key(created.text).secret_hash
    assert created.text.rpartition("_")[2][:32] not in repr(stored)
    assert (stored.key.name, stored.key.scopes) == ("Nightly import", ["credits:read", "runs:write"])
    assert (stored.key.account_id, stored.key.created_by) == (ACCOUNT, OWNER.id)


async def test_repeated_creation_replaces_the_secret_of_the_key(api_keys, store):
    first, second = [await api_keys.create(OWNER, KEY, "live", SETTINGS) for _ in range(2)]

    assert first.text != second.text
    assert list(store.keys) == [KEY]
    assert store.keys[KEY].secret_hash == read_key(second.text).secret_hash


@pytest.mark.parametrize("expires_in", [-HOUR, timedelta(0), LIFETIME_MAX + HOUR], ids=str)
async def test_expiry_outside_the_next_five_years_is_rejected(api_keys, store, expires_in):
    with pytest.raises(ExpiryInvalid):
        await api_keys.create(OWNER, KEY, "live", replace(SETTINGS, expires_at=NOON + expires_in))

    assert store.keys == {}


@pytest.mark.parametrize(
    ("user_id", "error"),
    [(USERS["member"], PermissionMissing), (USERS["viewer"], PermissionMissing), (STRANGER, AccountNotFound)],
    ids=["member", "viewer", "stranger"],
)
async def test_key_is_created_only_by_owners_and_admins(api_keys, store, user_id, error):
    with pytest.raises(error):
        await api_keys.create(caller_as(user_id), KEY, "live", SETTINGS)

    assert store.keys == {}


async def test_key_needs_a_chosen_account(api_keys):
    with pytest.raises(AccountNotChosen):
        await api_keys.create(replace(OWNER, chosen_account=None), KEY, "live", SETTINGS)


async def test_account_with_a_hundred_valid_keys_gets_no_other(api_keys, store, key):
    for _ in range(VALID_MAX - 1):
        await api_keys.create(OWNER, uuid.uuid4(), "live", SETTINGS)

    with pytest.raises(TooManyApiKeys) as error:
        await api_keys.rotate(OWNER, KEY, NEW, HOUR)

    assert (error.value.code, error.value.facts) == ("api_keys_limit", {"limit": 100})
    assert (len(store.keys), store.keys[KEY].key) == (100, key)


async def test_rotated_key_keeps_settings_and_family_and_the_old_one_expires(api_keys, store, key):
    rotated = await api_keys.rotate(ADMIN, KEY, NEW, HOUR)

    assert rotated.key == replace(key, id=NEW, created_by=ADMIN.id)
    assert rotated.key.family_id == KEY
    assert store.keys[NEW].secret_hash == read_key(rotated.text).secret_hash
    assert store.keys[KEY].key == replace(key, expires_at=NOON + HOUR)


async def test_failed_expiry_of_the_old_key_undoes_the_rotation(api_keys, store, key, monkeypatch):
    async def fail(*_):
        raise ConnectionError

    monkeypatch.setattr(api_keys.keys, "expire", fail)

    with pytest.raises(ConnectionError):
        await api_keys.rotate(OWNER, KEY, NEW, HOUR)

    assert [stored.key for stored in store.keys.values()] == [key]


@pytest.mark.parametrize("end", [{"revoked_at": NOON}, {"expires_at": NOON}], ids=["revoked", "expired"])
async def test_ended_key_is_neither_rotated_nor_changed(api_keys, store, key, end):
    store.keys[KEY] = replace(store.keys[KEY], key=replace(key, **end))

    with pytest.raises(ApiKeyEnded):
        await api_keys.rotate(OWNER, KEY, NEW, HOUR)
    with pytest.raises(ApiKeyEnded):
        await api_keys.change(OWNER, KEY, {"name": "Renamed"})

    assert [stored.key for stored in store.keys.values()] == [replace(key, **end)]


async def test_change_stores_only_the_sent_fields(api_keys, store, key):
    changes = {"name": " New  name", "credits_per_month_max": None}

    changed = await api_keys.change(OWNER, KEY, changes)

    assert changed == store.keys[KEY].key == replace(key, name="New name", credits_per_month_max=None)


@pytest.mark.parametrize(
    ("changes", "error"),
    [({"expires_at": NOON}, ExpiryInvalid), ({"name": " "}, NameInvalid)],
    ids=["expiry", "name"],
)
async def test_invalid_change_leaves_the_key(api_keys, store, key, changes, error):
    with pytest.raises(error):
        await api_keys.change(OWNER, KEY, changes)

    assert store.keys[KEY].key == key


async def test_revoked_key_stays_stored_and_a_repeated_revocation_succeeds(api_keys, store, key):
    for _ in range(2):
        await api_keys.revoke(OWNER, KEY)

    assert store.keys[KEY].key == replace(key, revoked_at=NOON)


async def test_key_of_another_account_is_not_found(api_keys, store, key):
    for call in (
        api_keys.get(ELSEWHERE, KEY),
        api_keys.change(ELSEWHERE, KEY, {"name": "Renamed"}),
        api_keys.rotate(ELSEWHERE, KEY, NEW, HOUR),
        api_keys.revoke(ELSEWHERE, KEY),
    ):
        with pytest.raises(ApiKeyNotFound):
            await call

    assert [stored.key for stored in store.keys.values()] == [key]
