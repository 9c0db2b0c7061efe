import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from infrastructure.resilience.daemon_threads import DaemonThreadPool
from tests.support import until

PROJECT = Path(__file__).parents[3]
# The thread never ends, but the process must.
STUCK = """
import asyncio, threading
from infrastructure.resilience.daemon_threads import DaemonThreadPool

async def main():
    try:
        async with asyncio.timeout(0.05):
            await DaemonThreadPool("stuck", size=1).run(threading.Event().wait)
    except TimeoutError:
        print("left")

asyncio.run(main())
"""


@pytest.fixture
def gate():
    gate = threading.Event()
    yield gate
    gate.set()


@pytest.fixture
def threads(gate):
    threads = DaemonThreadPool("tests", size=3)
    yield threads
    gate.set()
    threads.close()


async def test_call_runs_in_another_thread_and_returns_its_result(threads):
    assert await threads.run(threading.get_ident) != threading.get_ident()


async def test_error_of_a_call_is_raised_in_the_caller(threads):
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 / 0)

    assert await threads.run(lambda: "still works") == "still works"


async def test_concurrent_calls_are_limited(threads, gate):
    running, counts = set(), []

    def call(number):
        running.add(number)
        counts.append(len(running))
        gate.wait()
        running.discard(number)

    calls = [asyncio.create_task(threads.run(lambda number=number: call(number))) for number in range(10)]
    await until(lambda: len(running) == 3)
    gate.set()
    await asyncio.gather(*calls)

    assert max(counts) == 3


async def test_stuck_calls_do_not_block_the_next_call(threads, gate):
    for _ in range(20):
        await threads.run(lambda: None)
    stuck = [asyncio.create_task(threads.run(gate.wait)) for _ in range(2)]

    assert await asyncio.wait_for(threads.run(lambda: "free"), 5) == "free"
    gate.set()
    await asyncio.gather(*stuck)


async def test_call_cancelled_while_waiting_never_runs(threads, gate):
    stuck = [asyncio.create_task(threads.run(gate.wait)) for _ in range(3)]
    ran = []
    waiting = asyncio.create_task(threads.run(lambda: ran.append(1)))
    await asyncio.sleep(0)

    waiting.cancel()
    await asyncio.wait([waiting])
    gate.set()
    await asyncio.gather(*stuck)
    await threads.run(lambda: None)

    assert waiting.cancelled()
    assert ran == []


async def test_close_ends_the_threads():
    threads = DaemonThreadPool("ending", size=2)
    await threads.run(lambda: None)

    threads.close()

    await until(lambda: not any(thread.name.startswith("ending") for thread in threading.enumerate()))
    assert threads


def test_stuck_call_does_not_prevent_the_process_exit():
    ended = subprocess.run(
        [sys.executable, "-c", STUCK],
        env={"PYTHONPATH": str(PROJECT / "src")},
        timeout=20,
        check=True,
        capture_output=True,
        text=True,
    )

    assert ended.stdout == "left\n"
