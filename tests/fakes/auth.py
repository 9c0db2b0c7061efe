"""In-memory accounts, members, API keys and invitations that share one store, and a mail that records."""

import copy
import uuid
from contextlib import asynccontextmanager
from datetime import timedelta

from msgspec.structs import replace

from features.auth.application import ports
from features.auth.application.ports import StoredApiKey
from features.auth.domain.errors import InvitationNotSent
from features.auth.domain.invitations import Invitation
from features.auth.domain.memberships import Account, Member, Membership, MembershipList
from features.auth.domain.roles import ROLES
from shared.caller import Caller
from shared.pagination import Cursor
from tests.support import NOON

ACCOUNT = uuid.UUID(int=1)
USERS = {role: uuid.UUID(int=10 + number) for number, role in enumerate(ROLES)}
STRANGER = uuid.UUID(int=99)


def caller_as(user_id, *, account_id=ACCOUNT):
    return Caller(id=user_id, claims="{}", email=f"{user_id.int}@example.com", chosen_account=account_id)


class FakeStore:
    """The rows of all fakes of this module. A failed transaction restores them."""

    def __init__(self):
        self.accounts = {}
        self.roles = {}  # account id -> {user id: role}, in the order in which the members joined
        self.keys = {}
        self.invitations = {}
        self.tokens = {}  # token hash -> invitation id
        self.locked = None  # account id, until the transaction ends
        self.is_in_transaction = False
        self.add_account(ACCOUNT, {user: role for role, user in USERS.items()})

    def add_account(self, account_id, roles, *, name="Bakery", deleted_at=None):
        created_at = NOON + timedelta(seconds=len(self.accounts))
        self.accounts[account_id] = Account(
            id=account_id, name=name, plan="free", role=None, created_at=created_at, deleted_at=deleted_at
        )
        self.roles[account_id] = dict(roles)

    def rows(self):
        return copy.deepcopy((self.accounts, self.roles, self.keys, self.invitations, self.tokens))

    @asynccontextmanager
    async def transaction(self):
        if self.is_in_transaction:  # joins the open one
            yield
            return
        before = self.rows()
        self.is_in_transaction = True
        try:
            yield
        except BaseException:
            self.accounts, self.roles, self.keys, self.invitations, self.tokens = before
            raise
        finally:
            self.is_in_transaction, self.locked = False, None


class FakeAccounts(ports.Accounts, ports.Memberships):
    def __init__(self, store):
        self.store = store

    def _seen_by(self, user_id, *, is_deleted=False):
        return [
            replace(account, role=self.store.roles[account.id][user_id])
            for account in self.store.accounts.values()
            if user_id in self.store.roles[account.id] and (account.deleted_at is not None) == is_deleted
        ]

    async def mine(self, caller, *, before, accounts_max):
        found = [
            one
            for one in self._seen_by(caller.id)
            if before is None or Cursor(one.created_at, one.id) < before
        ]
        return sorted(found, key=lambda one: one.created_at, reverse=True)[:accounts_max]

    async def get(self, caller, account_id):
        if caller.kind == "api_key":
            return self.store.accounts[caller.chosen_account]
        return next((one for one in self._seen_by(caller.id) if one.id == account_id), None)

    async def deleted(self, user_id):
        found = [one for one in self._seen_by(user_id, is_deleted=True) if one.role == "owner"]
        return sorted(found, key=lambda one: one.deleted_at, reverse=True)

    async def create(self, account_id, *, owner, name, accounts_max):
        if account_id in self.store.accounts:
            return True
        if sum(one.role == "owner" for one in self._seen_by(owner)) >= accounts_max:
            return False
        self.store.add_account(account_id, {owner: "owner"}, name=name)
        return True

    async def rename(self, account_id, name):
        self.store.accounts[account_id] = replace(self.store.accounts[account_id], name=name)

    async def delete(self, account_id):
        self.store.accounts[account_id] = replace(self.store.accounts[account_id], deleted_at=NOON)

    async def restore(self, account_id, owner):
        is_found = account_id in [one.id for one in await self.deleted(owner)]
        if is_found:
            self.store.accounts[account_id] = replace(self.store.accounts[account_id], deleted_at=None)
        return is_found

    async def find(self, caller):
        if caller.kind == "api_key":
            return Membership(account_id=caller.chosen_account, role=None, plan="free")
        account = await self.get(caller, caller.chosen_account)
        return account and Membership(account_id=account.id, role=account.role, plan=account.plan)


class FakeMembers(ports.Members):
    """Changes fail unless the account is locked."""

    def __init__(self, store):
        self.store = store

    def transaction(self):
        return self.store.transaction()

    async def lock(self, account_id):
        assert self.store.is_in_transaction
        self.store.locked = account_id
        return MembershipList(dict(self.store.roles.get(account_id, {})))

    async def list(self, caller, account_id, *, after, members_max):
        roles = self.store.roles.get(account_id, {})
        found = [self._member(account_id, user_id) for user_id in roles] if caller.id in roles else []
        return [one for one in found if after is None or Cursor(one.created_at, one.user_id) > after][
            :members_max
        ]

    def _member(self, account_id, user_id):
        roles = self.store.roles[account_id]
        return Member(
            user_id=user_id,
            email=f"{user_id.int}@example.com",
            role=roles[user_id],
            created_at=NOON + timedelta(seconds=list(roles).index(user_id)),
        )

    async def add(self, account_id, user_id, role):
        self.store.roles[account_id].setdefault(user_id, role)

    async def change_role(self, account_id, user_id, role):
        assert self.store.locked == account_id
        self.store.roles[account_id][user_id] = role
        return self._member(account_id, user_id)

    async def remove(self, account_id, user_id):
        assert self.store.locked == account_id
        del self.store.roles[account_id][user_id]

    async def has_email(self, account_id, email):
        return email in [f"{user_id.int}@example.com" for user_id in self.store.roles[account_id]]


class FakeApiKeys(ports.ApiKeys):
    """``store.keys`` holds a ``StoredApiKey`` for each key id."""

    def __init__(self, store):
        self.store = store

    def transaction(self):
        return self.store.transaction()

    def _valid(self, account_id):
        keys = [stored.key for stored in self.store.keys.values()]
        return [key for key in keys if key.account_id == account_id and key.is_valid(NOON)]

    def _put(self, key):
        self.store.keys[key.id] = replace(self.store.keys[key.id], key=key)
        return key

    async def lock_and_count_valid(self, account_id):
        return len(self._valid(account_id))

    async def add(self, issued, key):
        assert self.store.locked == key.account_id
        self.store.keys[key.id] = StoredApiKey(key=key, secret_hash=issued.secret_hash)
        return key

    async def get(self, _caller, account_id, key_id):
        stored = self.store.keys.get(key_id)
        return stored.key if stored and stored.key.account_id == account_id else None

    async def change(self, key, settings):
        fields = {name: getattr(settings, name) for name in settings.__struct_fields__}
        return self._put(replace(key, **fields))

    async def expire(self, key, at):
        return self._put(replace(key, expires_at=min(at, key.expires_at or at)))

    async def revoke(self, account_id, key_id):
        key = await self.get(None, account_id, key_id)
        return key and self._put(replace(key, revoked_at=key.revoked_at or NOON))

    async def valid_of(self, account_id, creator):
        return tuple(key for key in self._valid(account_id) if key.created_by == creator)

    async def revoke_of(self, account_id, creator):
        keys = await self.valid_of(account_id, creator)
        return tuple([self._put(replace(key, revoked_at=NOON)) for key in keys])


class FakeInvitations(ports.Invitations):
    def __init__(self, store):
        self.store = store

    def _open(self, account_id):
        every = self.store.invitations.values()
        return [one for one in every if one.account_id == account_id and one.closed_at is None]

    def _put(self, invitation, **fields):
        self.store.invitations[invitation.id] = replace(invitation, **fields)
        return self.store.invitations[invitation.id]

    async def open(self, invitation_id, account_id, *, email, role, token_hash, invited_by, expires_at):
        assert self.store.locked == account_id
        earlier = next((one.id for one in self._open(account_id) if one.email == email), invitation_id)
        self.store.tokens = {key: one for key, one in self.store.tokens.items() if one != earlier}
        self.store.tokens[token_hash] = earlier
        self.store.invitations[earlier] = Invitation(
            account_id=account_id,
            id=earlier,
            email=email,
            role=role,
            invited_by=invited_by,
            created_at=NOON,
            expires_at=expires_at,
            sent_at=None,
            closed_at=None,
        )
        return self.store.invitations[earlier]

    async def count_open(self, account_id):
        return len(self._open(account_id))

    async def mark_sent(self, _account_id, invitation_id):
        return self._put(self.store.invitations[invitation_id], sent_at=NOON)

    async def withdraw(self, account_id, invitation_id):
        found = [one for one in self._open(account_id) if one.id == invitation_id]
        return bool([self._put(one, closed_at=NOON) for one in found])

    async def withdraw_of(self, account_id, inviter):
        found = [one for one in self._open(account_id) if one.invited_by == inviter]
        return tuple([self._put(one, closed_at=NOON) for one in found])

    async def lock_by_token(self, token_hash):
        return self.store.invitations.get(self.store.tokens.get(token_hash))

    async def close(self, invitation):
        self._put(invitation, closed_at=NOON)


class FakeInvitationMail(ports.InvitationMail):
    """Fails the test when a mail is sent inside a transaction."""

    def __init__(self, store):
        self.store = store
        self.sent = []
        self.is_down = False

    async def send(self, email, *, link, account_name, inviter):
        assert not self.store.is_in_transaction
        if self.is_down:
            raise InvitationNotSent
        self.sent.append({"email": email, "link": link, "account_name": account_name, "inviter": inviter})

    @property
    def tokens(self):
        return [mail["link"].rpartition("token=")[2] for mail in self.sent]
