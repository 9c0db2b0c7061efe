"""Authentication caches a context for one second."""

import uuid

import pytest

from features.auth.application import authentication as door_module
from features.auth.application.authentication import Authentication
from features.auth.domain.errors import AccountHeaderInvalid, TokenInvalid
from features.auth.domain.memberships import Membership
from shared.caller import AccountNotFound, Caller

USER = Caller(id=uuid.uuid4(), claims="{}")
ACCOUNT = uuid.uuid4()
KEY = Caller(kind="api_key", id=uuid.uuid4(), claims="{}", chosen_account=ACCOUNT)


class Callers:
    def __init__(self):
        self.asked = []
        self.known = {"Bearer user": USER, "Bearer key": KEY}

    async def identify(self, authorization):
        self.asked.append(authorization)
        if authorization not in self.known:
            raise TokenInvalid
        return self.known[authorization]


class Access:
    standing = Membership(account_id=ACCOUNT, role="owner", plan="pro")

    async def remembered_standing(self, _):
        return self.standing


class Clock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def callers():
    return Callers()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def door(callers, clock):
    return Authentication(callers, Access(), clock)


async def test_context_contains_the_caller_the_account_and_its_plan(door):
    visit = await door.visit(b"Bearer user", None)

    assert (visit.caller, visit.account_id, visit.plan) == (USER, ACCOUNT, "pro")
    assert visit.counted_as == f"user:{USER.id}"


async def test_caller_without_an_account_has_the_free_plan(door, monkeypatch):
    monkeypatch.setattr(Access, "standing", None)

    visit = await door.visit(b"Bearer user", None)

    assert (visit.account_id, visit.plan) == (None, "free")


@pytest.mark.parametrize(("seconds", "times"), [(0.0, 1), (0.9, 1), (1.0, 2)])
async def test_context_is_cached_for_one_second(door, callers, clock, seconds, times):
    await door.visit(b"Bearer user", None)
    clock.now_s += seconds
    await door.visit(b"Bearer user", None)

    assert len(callers.asked) == times


async def test_rejection_is_not_cached(door, callers):
    for _ in range(2):
        with pytest.raises(TokenInvalid):
            await door.visit(b"Bearer nobody", None)

    assert len(callers.asked) == 2


async def test_contexts_are_cached_per_chosen_account(door):
    other = uuid.uuid4()

    visits = [await door.visit(b"Bearer user", account) for account in (None, str(other).encode())]

    assert [visit.caller.chosen_account for visit in visits] == [None, other]


async def test_api_key_cannot_choose_another_account(door):
    assert (await door.visit(b"Bearer key", str(ACCOUNT).encode())).caller == KEY
    with pytest.raises(AccountNotFound):
        await door.visit(b"Bearer key", str(uuid.uuid4()).encode())


@pytest.mark.parametrize("header", [b"", b"x", b"\xff", b"1", b"' or 1=1"])
async def test_account_header_that_is_no_uuid_is_rejected(door, header):
    with pytest.raises(AccountHeaderInvalid):
        await door.visit(b"Bearer user", header)


async def test_number_of_cached_contexts_is_bounded(door, monkeypatch):
    monkeypatch.setattr(door_module, "REMEMBERED_MAX", 10)

    for _ in range(25):
        await door.visit(b"Bearer user", str(uuid.uuid4()).encode())

    assert len(door._known) <= 10  # noqa: SLF001  the size of the cache is not visible otherwise
