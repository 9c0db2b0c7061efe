import asyncio

import pytest

from shared.single_flight import SingleFlight


class Work:
    """Goes on until the gate is open; remembers how often it began and how it ended."""

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


async def test_who_asks_for_the_same_meanwhile_gets_the_same(flights, work):
    waiters = await joined(flights, work, "a", "a", "a")

    work.gate.set()

    assert await asyncio.gather(*waiters) == [1, 1, 1]
    assert work.begun == 1


async def test_who_asks_for_something_else_gets_something_else(flights, work):
    waiters = await joined(flights, work, "a", "b")

    work.gate.set()

    assert await asyncio.gather(*waiters) == [1, 2]


async def test_who_asks_afterwards_begins_anew(flights, work):
    work.gate.set()

    assert await flights.join("a", work) == 1
    await turns()
    assert "a" not in flights
    assert await flights.join("a", work) == 2


async def test_one_can_tell_whether_somebody_is_under_way(flights, work):
    (waiter,) = await joined(flights, work, "a")

    assert ("a" in flights, "b" in flights) == (True, False)
    work.gate.set()
    await waiter


async def test_what_is_raised_all_hear_and_the_next_one_begins_anew(flights, work):
    work.error = ValueError("no")
    waiters = await joined(flights, work, "a", "a")

    work.gate.set()

    outcomes = await asyncio.gather(*waiters, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ValueError, ValueError]
    work.error = None
    assert await flights.join("a", work) == 2


@pytest.mark.parametrize("leaving", [0, 1])
async def test_who_leaves_does_not_disturb_the_others(flights, work, leaving):
    waiters = await joined(flights, work, "a", "a")

    waiters[leaving].cancel()
    await turns()

    assert waiters[leaving].cancelled()
    work.gate.set()
    assert await waiters[1 - leaving] == 1
    assert work.ended == ["done"]


async def test_when_the_last_one_leaves_the_work_is_cancelled_and_its_end_awaited(flights, work):
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


async def test_who_comes_while_abandoned_work_is_ending_begins_anew(flights, work):
    work.cleaned.clear()
    (abandoned,) = await joined(flights, work, "a")
    abandoned.cancel()
    await turns()

    (newcomer,) = await joined(flights, work, "a")
    work.cleaned.set()
    await asyncio.wait([abandoned])

    assert "a" in flights  # the end of the old one did not end the new one
    work.gate.set()
    assert await newcomer == 2


async def test_an_error_that_nobody_waits_for_is_no_complaint(flights):
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
