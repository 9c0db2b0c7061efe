"""Cached completions: per account, for one day, deleted with the account."""

import asyncio
import hashlib

import pytest

from infrastructure.ai.completion_cache import CachedCompletion
from infrastructure.database.ai.completion_cache import PostgresCompletionCache

KEY = hashlib.sha256(b"question").digest()
ANSWER = CachedCompletion(text='{"score": 7}', provider="openai", model="gpt-5", is_simulated=True)
LONG = CachedCompletion(text='"' + "word " * 1_000 + '"', provider="p", model="m", is_simulated=False)
EXPIRE = "update completion_cache set expires_at = now() - interval '1 second' where account_id = $1"


@pytest.fixture
def answers(database):
    return PostgresCompletionCache(database)


@pytest.mark.parametrize("answer", [ANSWER, LONG])
async def test_stored_completion_is_found(answers, tenant, answer):
    await answers.put(tenant.account_id, KEY, answer)

    assert await answers.find(tenant.account_id, KEY) == answer


async def test_other_account_does_not_find_the_completion(answers, tenant, other_tenant):
    await answers.put(tenant.account_id, KEY, ANSWER)

    assert await answers.find(other_tenant.account_id, KEY) is None
    assert await answers.find(tenant.account_id, hashlib.sha256(b"another").digest()) is None


async def test_newest_completion_is_found(answers, tenant):
    await answers.put(tenant.account_id, KEY, LONG)
    await answers.put(tenant.account_id, KEY, ANSWER)

    assert await answers.find(tenant.account_id, KEY) == ANSWER


async def test_concurrent_lookups_each_get_their_own_completion(answers, tenant, other_tenant):
    def numbered(number):
        account_id = (tenant if number % 2 else other_tenant).account_id
        return account_id, hashlib.sha256(bytes([number])).digest()

    def answer(number):
        return CachedCompletion(text=f"{number}" * number * 30, provider="p", model="m", is_simulated=False)

    await asyncio.gather(*(answers.put(*numbered(number), answer(number)) for number in range(1, 100)))

    found = await asyncio.gather(*(answers.find(*numbered(number)) for number in range(1, 101)))
    assert found == [answer(number) for number in range(1, 100)] + [None]


async def test_concurrent_writes_of_one_key_store_it(answers, tenant):
    await asyncio.gather(*(answers.put(tenant.account_id, KEY, ANSWER) for _ in range(20)))

    assert await answers.find(tenant.account_id, KEY) == ANSWER


async def test_completion_is_stored_for_a_day(answers, owner, tenant):
    await answers.put(tenant.account_id, KEY, ANSWER)

    hours = await owner.fetchval(
        "select extract(epoch from expires_at - created_at) / 3600 from completion_cache"
        " where account_id = $1",
        tenant.account_id,
    )
    assert float(hours) == 24


async def test_expired_completion_is_not_found_and_can_be_stored_again(answers, owner, tenant):
    await answers.put(tenant.account_id, KEY, ANSWER)
    await owner.execute(EXPIRE, tenant.account_id)
    assert await answers.find(tenant.account_id, KEY) is None

    await answers.put(tenant.account_id, KEY, ANSWER)

    assert await answers.find(tenant.account_id, KEY) == ANSWER


async def test_unreadable_completion_is_not_found(answers, owner, tenant):
    await answers.put(tenant.account_id, KEY, ANSWER)

    for body, is_compressed in ((b"not zstd", True), (b"\xff\xfe", False)):
        await owner.execute(
            "update completion_cache set completion = $2, is_compressed = $3 where account_id = $1",
            tenant.account_id,
            body,
            is_compressed,
        )
        assert await answers.find(tenant.account_id, KEY) is None


async def test_completion_of_a_removed_account_is_dropped_and_the_others_are_stored(
    answers, owner, tenant, other_tenant
):
    await answers.put(tenant.account_id, KEY, ANSWER)
    await owner.execute("delete from accounts where id = $1", tenant.account_id)

    await asyncio.gather(
        answers.put(tenant.account_id, KEY, ANSWER), answers.put(other_tenant.account_id, KEY, ANSWER)
    )

    assert await answers.find(tenant.account_id, KEY) is None
    assert await answers.find(other_tenant.account_id, KEY) == ANSWER
