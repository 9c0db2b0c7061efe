import asyncio

import pytest

from shared.single_flight import SingleFlight


class Work:
    """Runs until the gate opens; records its number of starts and its outcomes."""

    def __init__(self):
        self.begun = 0
        self.ended = []
        self.gate = asyncio.Event()
        self.cleaned = asyncio.Event()
        self.cleaned.set()
        self.error = None

    async def __call__(self):
        self.begun += 1
        number = self.begun
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            await self.cleaned.wait()
            self.ended.append("cancelled")
            raise
        self.ended.append("done")
        if self.error:
            raise self.error
        return number


@pytest.fixture
def work():
    return Work()


@pytest.fixture
def flights():
    return SingleFlight()


async def turns(number=5):
    for _ in range(number):
        await asyncio.sleep(0)


async def joined(flights, work, *keys):
    waiters = [asyncio.create_task(flights.join(key, work)) for key in keys]
    await turns()
    return waiters


async def test_concurrent_calls_with_one_key_share_one_execution(flights, work):
    waiters = await joined(flights, work, "a", "a", "a")

    work.gate.set()

    assert await asyncio.gather(*waiters) == [1, 1, 1]
    assert work.begun == 1


async def test_calls_with_different_keys_run_separately(flights, work):
    waiters = await joined(flights, work, "a", "b")

    work.gate.set()

    assert await asyncio.gather(*waiters) == [1, 2]


async def test_call_after_completion_starts_a_new_execution(flights, work):
    work.gate.set()

    assert await flights.join("a", work) == 1
    await turns()
    assert "a" not in flights
    assert await flights.join("a", work) == 2


async def test_membership_shows_whether_a_key_is_in_flight(flights, work):
    (waiter,) = await joined(flights, work, "a")

    assert ("a" in flights, "b" in flights) == (True, False)
    work.gate.set()
    await waiter


async def test_all_waiters_get_the_exception_and_the_next_call_starts_again(flights, work):
    work.error = ValueError("no")
    waiters = await joined(flights, work, "a", "a")

    work.gate.set()

    outcomes = await asyncio.gather(*waiters, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ValueError, ValueError]
    work.error = None
    assert await flights.join("a", work) == 2


@pytest.mark.parametrize("leaving", [0, 1])
async def test_cancelled_waiter_does_not_affect_the_others(flights, work, leaving):
    waiters = await joined(flights, work, "a", "a")

    waiters[leaving].cancel()
    await turns()

    assert waiters[leaving].cancelled()
    work.gate.set()
    assert await waiters[1 - leaving] == 1
    assert work.ended == ["done"]


async def test_cancelling_the_last_waiter_cancels_the_work_and_awaits_its_end(flights, work):
    work.cleaned.clear()
    waiters = await joined(flights, work, "a", "a")

    for waiter in waiters:
        waiter.cancel()
    await turns()

    assert (waiters[0].done(), waiters[1].done()) == (True, False)
    work.cleaned.set()
    await asyncio.wait(waiters)
    assert work.ended == ["cancelled"]
    assert waiters[1].cancelled()


async def test_call_during_the_end_of_cancelled_work_starts_a_new_execution(flights, work):
    work.cleaned.clear()
    (abandoned,) = await joined(flights, work, "a")
    abandoned.cancel()
    await turns()

    (newcomer,) = await joined(flights, work, "a")
    work.cleaned.set()
    await asyncio.wait([abandoned])

    assert "a" in flights  # the end of the old execution did not remove the new one
    work.gate.set()
    assert await newcomer == 2


async def test_exception_without_waiters_is_not_logged_by_asyncio(flights):
    complaints = []
    loop = asyncio.get_running_loop()
    former = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: complaints.append(context))

    async def fail_when_cancelled():
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError

    (waiter,) = await joined(flights, fail_when_cancelled, "a")
    waiter.cancel()
    await asyncio.wait([waiter])
    del waiter
    await turns()
    loop.set_exception_handler(former)

    assert complaints == []
