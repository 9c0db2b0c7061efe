"""Accounts and the current user with fakes behind their ports."""

import uuid
from datetime import timedelta

import pytest
from msgspec.structs import replace

from features.auth.application.accounts import OWNED_MAX
from features.auth.domain.errors import NameInvalid, TooManyAccounts
from shared.caller import AccountNotFound, Caller
from tests.fakes.auth import ACCOUNT, STRANGER, USERS, caller_as
from tests.support import NOON

OWNER = caller_as(USERS["owner"])
NEW = uuid.UUID(int=2)


async def test_creator_owns_the_account_under_its_tidy_name(accounts, store):
    created = await accounts.create(OWNER, NEW, "  Corner   bakery ")

    assert (created.id, created.name, created.role) == (NEW, "Corner bakery", "owner")
    assert store.roles[NEW] == {OWNER.id: "owner"}


async def test_repeated_creation_returns_the_first_account(accounts, store):
    first, second = [await accounts.create(OWNER, NEW, name) for name in ("First", "Second")]

    assert first == second
    assert len(store.accounts) == 2


async def test_creation_with_the_id_of_a_foreign_account_is_not_found(accounts):
    with pytest.raises(AccountNotFound):
        await accounts.create(caller_as(STRANGER), ACCOUNT, "Theirs")


async def test_owner_of_twenty_accounts_cannot_create_another(accounts, store):
    for number in range(OWNED_MAX - 1):
        await accounts.create(OWNER, uuid.UUID(int=100 + number), "One more")

    with pytest.raises(TooManyAccounts) as error:
        await accounts.create(OWNER, NEW, "Too many")

    assert (error.value.code, error.value.facts) == ("accounts_limit", {"limit": 20})
    assert len(store.accounts) == OWNED_MAX == 20


async def test_invalid_name_is_stored_neither_by_creation_nor_by_renaming(accounts, store):
    with pytest.raises(NameInvalid):
        await accounts.create(OWNER, NEW, " ")
    with pytest.raises(NameInvalid):
        await accounts.rename(OWNER, ACCOUNT, "a\x00b")

    assert [one.name for one in store.accounts.values()] == ["Bakery"]


async def test_renamed_account_has_the_tidy_name(accounts, store):
    renamed = await accounts.rename(OWNER, ACCOUNT, " New  name")

    assert renamed.name == store.accounts[ACCOUNT].name == "New name"


async def test_deleted_account_is_hidden_until_its_owner_restores_it(accounts):
    await accounts.delete(ACCOUNT)

    with pytest.raises(AccountNotFound):
        await accounts.get(OWNER, ACCOUNT)
    assert (await accounts.restore(OWNER, ACCOUNT)).deleted_at is None


async def test_account_that_is_not_deleted_cannot_be_restored(accounts):
    with pytest.raises(AccountNotFound):
        await accounts.restore(OWNER, ACCOUNT)


@pytest.mark.parametrize("user_id", [USERS["admin"], STRANGER], ids=["admin", "stranger"])
async def test_account_is_restored_only_by_an_owner(accounts, store, user_id):
    await accounts.delete(ACCOUNT)

    with pytest.raises(AccountNotFound):
        await accounts.restore(caller_as(user_id), ACCOUNT)

    assert store.accounts[ACCOUNT].deleted_at is not None


async def test_accounts_are_paged_newest_first(accounts):
    for number in (2, 3):
        await accounts.create(OWNER, uuid.UUID(int=number), "One more")

    first = await accounts.page(OWNER, cursor=None, limit=2)
    second = await accounts.page(OWNER, cursor=first.next_cursor, limit=2)

    assert [[one.id.int for one in page.items] for page in (first, second)] == [[3, 2], [1]]
    assert second.next_cursor is None


async def test_deleted_accounts_are_paged_last_deleted_first(accounts, store):
    for number in (2, 3, 4):
        deleted_at = NOON + timedelta(hours=number)
        store.add_account(uuid.UUID(int=number), {OWNER.id: "owner"}, deleted_at=deleted_at)

    first = await accounts.deleted(OWNER, cursor=None, limit=2)
    second = await accounts.deleted(OWNER, cursor=first.next_cursor, limit=2)

    assert [[one.id.int for one in page.items] for page in (first, second)] == [[4, 3], [2]]
    assert second.next_cursor is None


@pytest.mark.parametrize(
    ("role", "has_permission"), [("owner", True), ("admin", False)], ids=["owner", "admin"]
)
async def test_current_user_has_the_permissions_of_the_role(current_user, role, has_permission):
    account, permissions = await current_user.account_and_permissions(caller_as(USERS[role]))

    assert (account.id, account.role) == (ACCOUNT, role)
    assert ("account:delete" in permissions, "members:manage" in permissions) == (has_permission, True)


async def test_api_key_has_the_permissions_of_its_scopes_alone(current_user):
    key = Caller(
        kind="api_key",
        id=uuid.uuid4(),
        claims="{}",
        chosen_account=ACCOUNT,
        scopes=frozenset({"runs:read", "credits:read"}),
    )

    account, permissions = await current_user.account_and_permissions(key)

    assert (account.id, permissions) == (ACCOUNT, ["credits:read", "runs:read"])


async def test_user_without_membership_has_no_account_unless_one_was_chosen(current_user):
    stranger = caller_as(STRANGER)

    assert await current_user.account_and_permissions(replace(stranger, chosen_account=None)) == (None, [])
    with pytest.raises(AccountNotFound):
        await current_user.account_and_permissions(stranger)
