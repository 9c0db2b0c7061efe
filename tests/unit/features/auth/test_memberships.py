"""Rules for changing members, for every pair of roles."""

import itertools
import uuid

import pytest

from features.auth.domain.errors import LastOwner, MemberNotFound, NameInvalid, OwnersOnly, PermissionMissing
from features.auth.domain.memberships import MembershipList, tidy_name
from features.auth.domain.roles import ALLOWED, FOR_EVERY_ROLE, ROLES
from shared.caller import AccountNotFound
from shared.permissions import Permission

USERS = {role: uuid.uuid4() for role in ROLES}
SECOND = {role: uuid.uuid4() for role in ROLES}
STRANGER = uuid.uuid4()
FULL = MembershipList(
    {**{user: role for role, user in USERS.items()}, **{user: role for role, user in SECOND.items()}}
)


def test_every_permission_is_in_the_table_once():
    assert set(ALLOWED) == set(Permission.__args__)
    assert all(len(set(roles)) == len(roles) for roles in ALLOWED.values())


def test_higher_role_has_all_permissions_of_a_lower_one():
    for permission, roles in ALLOWED.items():
        assert roles == ROLES[: len(roles)], permission


def test_permissions_of_every_role_are_those_of_a_viewer():
    assert {permission for permission, roles in ALLOWED.items() if "viewer" in roles} == FOR_EVERY_ROLE


@pytest.mark.parametrize(("actor", "target", "role"), list(itertools.product(ROLES, ROLES, ROLES)))
def test_only_admins_and_owners_change_roles_and_only_owners_change_owners(actor, target, role):
    def change():
        FULL.check_change(USERS[actor], SECOND[target], role)
        return True

    if actor in ("member", "viewer"):
        with pytest.raises(PermissionMissing):
            change()
    elif actor == "admin" and "owner" in (target, role):
        with pytest.raises(OwnersOnly):
            change()
    else:
        assert change()


@pytest.mark.parametrize(("actor", "target"), list(itertools.product(ROLES, ROLES)))
def test_only_admins_and_owners_remove_members_and_only_owners_remove_owners(actor, target):
    def remove():
        FULL.check_removal(USERS[actor], SECOND[target])
        return True

    if actor in ("member", "viewer"):
        with pytest.raises(PermissionMissing):
            remove()
    elif actor == "admin" and target == "owner":
        with pytest.raises(OwnersOnly):
            remove()
    else:
        assert remove()


@pytest.mark.parametrize("role", ROLES)
def test_every_member_may_leave(role):
    assert FULL.check_removal(USERS[role], USERS[role]) is None


def test_last_owner_cannot_leave_or_change_role():
    roster = MembershipList({USERS["owner"]: "owner", USERS["admin"]: "admin"})

    with pytest.raises(LastOwner):
        roster.check_removal(USERS["owner"], USERS["owner"])
    with pytest.raises(LastOwner):
        roster.check_change(USERS["owner"], USERS["owner"], "admin")
    assert roster.check_change(USERS["owner"], USERS["owner"], "owner") is None


@pytest.mark.parametrize("act", ["change", "remove", "give"])
def test_non_member_gets_account_not_found(act):
    acts = {
        "change": lambda: FULL.check_change(STRANGER, USERS["viewer"], "viewer"),
        "remove": lambda: FULL.check_removal(STRANGER, USERS["viewer"]),
        "give": lambda: FULL.check_may_give(STRANGER, "viewer"),
    }

    with pytest.raises(AccountNotFound):
        acts[act]()


def test_change_of_an_unknown_member_raises_member_not_found():
    with pytest.raises(MemberNotFound):
        FULL.check_change(USERS["owner"], STRANGER, "viewer")
    with pytest.raises(MemberNotFound):
        FULL.check_removal(USERS["owner"], STRANGER)


@pytest.mark.parametrize(
    ("name", "tidy"), [("a", "a"), ("  two   words ", "two words"), ("焼き", "焼き"), ("x" * 200, "x" * 200)]
)
def test_white_space_in_a_name_is_collapsed(name, tidy):
    assert tidy_name(name) == tidy


@pytest.mark.parametrize("name", ["", " ", "\t\n", "x" * 201, "a\x00b", "a\x7fb", "\x9bx"], ids=ascii)
def test_invalid_name_is_rejected(name):
    with pytest.raises(NameInvalid):
        tidy_name(name)
