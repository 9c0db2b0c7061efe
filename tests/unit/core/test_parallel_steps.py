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


async def test_step_starts_after_all_stored_results_are_known():
    barrier, call = ReplayBarrier(["a", "b"]), Called()
    entering = asyncio.create_task(barrier.wait_then_run("a", call))
    await turn_of_the_loop()
    before = call.count

    async with barrier.track("b"):
        pass  # its stored result was read
    await entering

    assert (before, call.count, barrier.ended_count) == (0, 1, 1)
    assert (barrier.has_run("a"), barrier.has_run("b")) == (True, False)


async def test_no_step_starts_when_a_stored_result_is_a_failure():
    barrier, call = ReplayBarrier(["a", "b"]), Called()
    entering = asyncio.create_task(barrier.wait_then_run("a", call))
    with pytest.raises(ValueError, match="refused"):
        async with barrier.track("b"):
            raise ValueError("refused")
    await turn_of_the_loop()

    assert (call.count, entering.done()) == (0, False)
    entering.cancel()


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
async def test_two_stored_failures_are_both_raised_in_any_read_order(order):
    barrier, read = ReplayBarrier(["a", "b"]), {"a": asyncio.Event(), "b": asyncio.Event()}

    async def settle(name):
        async with barrier.track(name):
            await read[name].wait()
            raise ValueError(name)

    tracked = {name: asyncio.ensure_future(settle(name)) for name in read}
    for name in order:
        await turn_of_the_loop()
        assert not any(one.done() for one in tracked.values())
        read[name].set()
    await asyncio.wait(tracked.values())

    assert [str(one.exception()) for one in tracked.values()] == ["a", "b"]
