import asyncio

import pytest

from core.engine.parallel_steps import ReplayBarrier


class Called:
    def __init__(self):
        self.count = 0

    async def __call__(self):
        self.count += 1


async def turn_of_the_loop():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_nobody_begins_before_it_is_known_who_was_done_before():
    company, call = ReplayBarrier(["a", "b"]), Called()
    entering = asyncio.create_task(company.enter("a", call))
    await turn_of_the_loop()
    before = call.count

    async with company.settling("b"):
        pass  # what was kept of it was read
    await entering

    assert (before, call.count, company.ended_count) == (0, 1, 1)
    assert (company.has_entered("a"), company.has_entered("b")) == (True, False)


async def test_nobody_begins_when_one_was_refused_before():
    company, call = ReplayBarrier(["a", "b"]), Called()
    entering = asyncio.create_task(company.enter("a", call))
    with pytest.raises(ValueError, match="refused"):
        async with company.settling("b"):
            raise ValueError("refused")
    await turn_of_the_loop()

    assert (call.count, entering.done()) == (0, False)
    entering.cancel()


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
async def test_of_two_that_were_refused_before_both_are_told(order):
    company, read = ReplayBarrier(["a", "b"]), {"a": asyncio.Event(), "b": asyncio.Event()}

    async def settle(name):
        async with company.settling(name):
            await read[name].wait()
            raise ValueError(name)

    settling = {name: asyncio.ensure_future(settle(name)) for name in read}
    for name in order:
        await turn_of_the_loop()
        assert not any(one.done() for one in settling.values())
        read[name].set()
    await asyncio.wait(settling.values())

    assert [str(one.exception()) for one in settling.values()] == ["a", "b"]
