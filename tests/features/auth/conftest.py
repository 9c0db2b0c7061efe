"""Fakes of the authentication ports that record their calls."""

import uuid
from datetime import timedelta

import pytest

from features.auth.application.credentials import Credentials
from tests.support import NOON

USER_ID = uuid.UUID("7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11")


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
    return Credentials(verifier, sign_ups, key_ring, 25, clock)
