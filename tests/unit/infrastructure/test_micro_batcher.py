import asyncio

import pytest

from infrastructure.resilience.micro_batcher import MicroBatcher
from shared.errors import Unavailable


class Oracle:
    """Doubles numbers while the gate is open and records the batches."""

    def __init__(self):
        self.batches = []
        self.gate = asyncio.Event()

    async def __call__(self, numbers):
        self.batches.append(numbers)
        await self.gate.wait()
        if 13 in numbers:
            raise ValueError(13)
        if 404 in numbers:
            raise Unavailable
        return [number * 2 for number in numbers]


@pytest.fixture
def oracle():
    return Oracle()


async def turns(number=5):
    for _ in range(number):
        await asyncio.sleep(0)


async def test_concurrent_calls_share_a_batch_and_get_their_own_results(oracle):
    batches = MicroBatcher(oracle)
    asked = [asyncio.create_task(batches.ask(number)) for number in range(2)]
    await turns()
    asked += [asyncio.create_task(batches.ask(number)) for number in range(2, 5)]
    await turns()

    oracle.gate.set()

    assert await asyncio.gather(*asked) == [0, 2, 4, 6, 8]
    assert oracle.batches == [[0, 1], [2, 3, 4]]


async def test_every_call_is_answered(oracle):
    batches = MicroBatcher(oracle, size_max=3)
    oracle.gate.set()

    async def ask_in_a_row(first):
        return [await batches.ask(number) for number in range(first, first + 50)]

    async with asyncio.timeout(10):
        rows = await asyncio.gather(*(ask_in_a_row(first) for first in range(1_000, 2_000, 100)))

    assert [row[0] for row in rows] == list(range(2_000, 4_000, 200))


async def test_batch_size_is_limited(oracle):
    batches = MicroBatcher(oracle, size_max=2)
    oracle.gate.set()

    await asyncio.gather(*(batches.ask(number) for number in range(5)))

    assert max(len(batch) for batch in oracle.batches) == 2


async def test_failing_call_does_not_affect_the_others(oracle):
    batches = MicroBatcher(oracle)
    asked = [asyncio.create_task(batches.ask(number)) for number in (1, 13, 2)]
    await turns()

    oracle.gate.set()

    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert (outcomes[0], type(outcomes[1]), outcomes[2]) == (2, ValueError, 4)


async def test_unavailable_fails_the_batch_without_repetition(oracle):
    batches = MicroBatcher(oracle)
    asked = [asyncio.create_task(batches.ask(number)) for number in (1, 404, 2)]
    await turns()

    oracle.gate.set()

    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3
    assert oracle.batches == [[1, 404, 2]]


async def test_cancelled_call_does_not_affect_the_others(oracle):
    batches = MicroBatcher(oracle)
    asked = [asyncio.create_task(batches.ask(number)) for number in range(3)]
    await turns()

    asked[1].cancel()
    oracle.gate.set()

    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert (outcomes[0], type(outcomes[1]), outcomes[2]) == (0, asyncio.CancelledError, 4)
