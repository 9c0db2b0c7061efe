"""Members of an account with fakes behind their ports."""

import uuid

import pytest
from msgspec.structs import replace

from features.auth.application.ports import KeySettings
from features.auth.domain.errors import LastOwner, MemberNotFound, OwnersOnly, PermissionMissing
from shared.caller import AccountNotFound
from tests.fakes.auth import ACCOUNT, STRANGER, USERS, caller_as
from tests.support import NOON

OWNER, ADMIN, VIEWER = (caller_as(USERS[role]) for role in ("owner", "admin", "viewer"))
SETTINGS = KeySettings(
    name="key", scopes=["runs:read"], project=None, credits_per_month_max=None, expires_at=None
)


@pytest.fixture
async def keys(api_keys):
    """A key of the owner, a valid and a revoked key of the admin."""
    created = [
        (await api_keys.create(caller, uuid.UUID(int=number), "live", SETTINGS)).key
        for number, caller in enumerate((OWNER, ADMIN, ADMIN), start=1)
    ]
    await api_keys.revoke(OWNER, created[2].id)
    return created


@pytest.fixture
async def invitation(invitations):
    return await invitations.invite(ADMIN, ACCOUNT, uuid.UUID(int=4), email="new@example.com", role="member")


async def test_new_role_is_stored(members, store):
    changed = await members.change_role(OWNER, ACCOUNT, USERS["viewer"], "admin")

    assert (changed.user_id, changed.role) == (USERS["viewer"], "admin")
    assert store.roles[ACCOUNT][USERS["viewer"]] == "admin"


@pytest.mark.parametrize(
    ("actor", "member", "role", "error"),
    [
        ("owner", USERS["owner"], "admin", LastOwner),
        ("admin", USERS["owner"], "viewer", OwnersOnly),
        ("admin", USERS["member"], "owner", OwnersOnly),
        ("viewer", USERS["member"], "viewer", PermissionMissing),
        ("owner", STRANGER, "viewer", MemberNotFound),
    ],
    ids=["last owner", "owner changed by admin", "owner named by admin", "viewer", "unknown member"],
)
async def test_forbidden_role_change_stores_nothing(members, store, actor, member, role, error):
    before = dict(store.roles[ACCOUNT])

    with pytest.raises(error):
        await members.change_role(caller_as(USERS[actor]), ACCOUNT, member, role)

    assert store.roles[ACCOUNT] == before


async def test_removal_ends_the_members_keys_and_invitations(members, store, keys, invitation):
    removal = await members.remove(OWNER, ACCOUNT, ADMIN.id, keep_keys=False)

    assert ADMIN.id not in store.roles[ACCOUNT]
    assert removal.api_keys == (replace(keys[1], revoked_at=NOON),)
    assert removal.invitations == (replace(invitation, closed_at=NOON),)
    assert [stored.key.revoked_at for stored in store.keys.values()] == [None, NOON, NOON]


async def test_removal_can_keep_the_keys_but_not_the_invitations(members, store, keys, invitation):
    removal = await members.remove(OWNER, ACCOUNT, ADMIN.id, keep_keys=True)

    assert removal.api_keys == (keys[1],)
    assert removal.invitations == (replace(invitation, closed_at=NOON),)
    assert store.keys[keys[1].id].key.revoked_at is None


async def test_viewer_can_leave(members, store):
    await members.remove(VIEWER, ACCOUNT, VIEWER.id, keep_keys=False)

    assert VIEWER.id not in store.roles[ACCOUNT]


@pytest.mark.parametrize(
    ("actor", "member", "error"),
    [
        ("owner", USERS["owner"], LastOwner),
        ("admin", USERS["owner"], OwnersOnly),
        ("viewer", USERS["member"], PermissionMissing),
        ("owner", STRANGER, MemberNotFound),
    ],
    ids=["last owner", "owner removed by admin", "viewer", "unknown member"],
)
async def test_forbidden_removal_changes_no_member_key_or_invitation(
    members, store, keys, invitation, actor, member, error
):
    assert keys
    assert invitation
    before = store.rows()

    with pytest.raises(error):
        await members.remove(caller_as(USERS[actor]), ACCOUNT, member, keep_keys=False)

    assert store.rows() == before


async def test_failed_revocation_undoes_the_removal(members, store, monkeypatch):
    async def fail(*_):
        raise ConnectionError

    monkeypatch.setattr(members.invitations, "withdraw_of", fail)

    with pytest.raises(ConnectionError):
        await members.remove(OWNER, ACCOUNT, ADMIN.id, keep_keys=False)

    assert store.roles[ACCOUNT][ADMIN.id] == "admin"


async def test_members_are_paged_in_the_order_in_which_they_joined(members):
    first = await members.page(VIEWER, ACCOUNT, cursor=None, limit=3)
    second = await members.page(VIEWER, ACCOUNT, cursor=first.next_cursor, limit=3)

    assert [one.user_id for one in first.items + second.items] == list(USERS.values())
    assert second.next_cursor is None


async def test_members_of_a_foreign_account_are_not_found(members):
    with pytest.raises(AccountNotFound):
        await members.page(caller_as(STRANGER), ACCOUNT, cursor=None, limit=3)
