"""Lookups with a fake resolver inside the process: no packet leaves the machine."""

import asyncio
import threading
import uuid
from collections import Counter

import pytest

from infrastructure.egress.ip_policy import IpPolicy
from infrastructure.egress.lookups import Lookups, egress_account
from infrastructure.egress.ssrf_guard import EgressFailed, SsrfGuard
from tests.support import until


class FakeResolver:
    """Blocks lookups of hosts named ``stuck`` until the gate opens."""

    def __init__(self):
        self.gate = threading.Event()
        self.begun = Counter()

    def look_up(self, host, _port):
        self.begun[host] += 1
        if host.startswith("stuck"):
            self.gate.wait()
        return ["1.1.1.1"]


@pytest.fixture
def resolver():
    resolver = FakeResolver()
    yield resolver
    resolver.gate.set()


async def resolve(lookups, host, account_id):
    egress_account.set(account_id)
    return await lookups.resolve(host, 443)


async def test_one_account_occupies_two_threads_and_others_are_not_delayed(resolver):
    lookups, accounts = Lookups(resolver.look_up), [uuid.uuid4() for _ in range(4)]
    stuck = [
        asyncio.create_task(resolve(lookups, f"stuck{number}", account_id))
        for number, account_id in enumerate(accounts[:3])
        for _ in range(10)
    ]
    await until(lambda: resolver.begun.total() == 6)

    async with asyncio.timeout(5):
        found = await asyncio.gather(*(resolve(lookups, "free", accounts[3]) for _ in range(10)))

    assert found == [["1.1.1.1"]] * 10
    assert [resolver.begun[f"stuck{number}"] for number in range(3)] == [2, 2, 2]
    resolver.gate.set()
    assert await asyncio.gather(*stuck) == [["1.1.1.1"]] * 30


async def test_lookup_that_timed_out_counts_until_its_thread_is_free(resolver):
    lookups, account_id = Lookups(resolver.look_up, timeout_s=0.05), uuid.uuid4()
    guard = SsrfGuard(IpPolicy(), lookups.resolve)
    egress_account.set(account_id)

    for _ in range(5):
        with pytest.raises(EgressFailed, match="lookup_timed_out"):
            await guard.addresses("stuck", 443)
    assert resolver.begun["stuck"] == 2

    resolver.gate.set()
    await until(lambda: not lookups._lookups)  # noqa: SLF001  an idle account leaves no entry
    assert await resolve(lookups, "stuck", account_id) == ["1.1.1.1"]
