"""The context of an authenticated request: caller, account and plan."""

import uuid
from datetime import timedelta

import pytest

from features.auth.application.ports import StoredApiKey
from features.auth.domain.api_keys import issue
from features.auth.domain.errors import AccountHeaderInvalid
from shared.caller import AccountNotFound
from tests.unit.features.auth.conftest import ACCOUNT_ID, USER_ID
from tests.unit.features.auth.test_api_key_callers import api_key


async def test_context_contains_the_caller_the_account_and_its_plan(authenticator):
    context = await authenticator.authenticate(b"Bearer t", None)

    assert (context.caller.id, context.account_id, context.plan) == (USER_ID, ACCOUNT_ID, "pro")
    assert context.rate_limit_key == f"user:{USER_ID}"


async def test_caller_without_an_account_has_the_free_plan(authenticator, memberships):
    memberships.membership = None

    context = await authenticator.authenticate(b"Bearer t", None)

    assert (context.account_id, context.plan) == (None, "free")


async def test_cached_context_is_the_same_object(authenticator, clock):
    first = await authenticator.authenticate(b"Bearer t", None)
    clock.now += timedelta(seconds=59)

    assert await authenticator.authenticate(b"Bearer t", None) is first


async def test_contexts_are_cached_per_chosen_account(authenticator):
    other = uuid.uuid4()

    contexts = [
        await authenticator.authenticate(b"Bearer t", account) for account in (None, str(other).encode())
    ]

    assert [context.caller.chosen_account for context in contexts] == [None, other]


async def test_api_key_cannot_choose_another_account(authenticator, key_ring):
    issued = issue(uuid.uuid4(), "live")
    key = api_key(issued.id)
    key_ring.known[issued.id] = StoredApiKey(key=key, secret_hash=issued.secret_hash)
    authorization = f"Bearer {issued.text}".encode()

    context = await authenticator.authenticate(authorization, str(key.account_id).encode())

    assert context.caller.chosen_account == key.account_id
    with pytest.raises(AccountNotFound):
        await authenticator.authenticate(authorization, str(uuid.uuid4()).encode())


@pytest.mark.parametrize("header", [b"", b"x", b"\xff", b"1", b"' or 1=1"])
async def test_account_header_that_is_no_uuid_is_rejected(authenticator, header):
    with pytest.raises(AccountHeaderInvalid):
        await authenticator.authenticate(b"Bearer t", header)
