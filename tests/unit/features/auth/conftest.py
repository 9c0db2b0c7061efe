"""Use cases with fakes behind their ports, and fakes of the authentication ports that record their calls."""

import uuid
from datetime import timedelta

import pytest

from features.auth.application.accounts import Accounts, CurrentUser
from features.auth.application.api_keys import ApiKeys
from features.auth.application.authentication import Authenticator
from features.auth.application.invitations import Invitations
from features.auth.application.members import Members
from features.auth.domain.memberships import Membership
from shared.ttl_cache import TtlCache
from tests.fakes.auth import (
    FakeAccounts,
    FakeApiKeys,
    FakeInvitationMail,
    FakeInvitations,
    FakeMembers,
    FakeStore,
)
from tests.support import NOON

USER_ID = uuid.UUID("7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11")
ACCOUNT_ID = uuid.UUID("5a4d1f6e-3a55-4f0e-9c57-0d3f4b9a2f12")


class Verifier:
    """Accepts every token and returns ``claims`` for each."""

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

    async def sign_up_if_new(self, user_id, *, email, account_name, bonus_credits):
        self.seen.append((user_id, email, account_name, bonus_credits))


class KeyRing:
    def __init__(self):
        self.known = {}
        self.asked = []
        self.uses = []

    async def find(self, key_id):
        self.asked.append(key_id)
        return self.known.get(key_id)

    def record_use(self, key, at):
        self.uses.append((key.id, at))


class Memberships:
    def __init__(self):
        self.membership = Membership(account_id=ACCOUNT_ID, role="owner", plan="pro")

    async def find(self, _):
        return self.membership


class Clock:
    now = NOON

    def __call__(self):
        return self.now

    def timestamp(self):
        return self.now.timestamp()


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
def memberships():
    return Memberships()


@pytest.fixture
def authenticator(verifier, sign_ups, key_ring, memberships, clock):
    contexts = TtlCache(100, now_s=clock.timestamp)
    return Authenticator(verifier, sign_ups, key_ring, memberships, 25, clock, contexts)


@pytest.fixture
def identify(authenticator):
    async def identify(authorization):
        return (await authenticator.authenticate(authorization.encode("latin-1"), None)).caller

    return identify


@pytest.fixture
def store():
    return FakeStore()


@pytest.fixture
def mail(store):
    return FakeInvitationMail(store)


@pytest.fixture
def accounts(store):
    return Accounts(FakeAccounts(store))


@pytest.fixture
def current_user(store):
    return CurrentUser(FakeAccounts(store), FakeAccounts(store))


@pytest.fixture
def api_keys(store, clock):
    return ApiKeys(FakeApiKeys(store), FakeMembers(store), clock)


@pytest.fixture
def invitations(store, mail, clock):
    return Invitations(
        FakeInvitations(store), FakeMembers(store), FakeAccounts(store), mail, "https://app.example", clock
    )


@pytest.fixture
def members(store):
    return Members(FakeMembers(store), FakeInvitations(store), FakeApiKeys(store))
