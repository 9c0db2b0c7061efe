"""Tests of watching a run, and of Ctrl-C while watching."""

import asyncio
from contextlib import contextmanager

import pytest

from core.cli.output.run_watcher import WatchInterrupted, poll_until_ended, watch_run
from tests.integration.cli.responses import CANCELLED, COMPLETED, RUN, RUN_ID, problem, shown
from tests.support import until
from tests.support.scripted_server import http, stall

HELD = (stall,)  # the server holds the poll until there is a change


@pytest.fixture
def seen():
    return []


@pytest.fixture
def bar(seen):
    @contextmanager
    def bar():
        yield lambda run: seen.append((run.status, run.progress))

    return bar


class Keys:
    """Presses Ctrl-C when ``seen`` has a given length; one length for each time the run is watched."""

    def __init__(self, seen, *turns):
        self.seen, self.turns = seen, list(turns)

    @contextmanager
    def __call__(self):
        pressed = asyncio.Event()
        count = self.turns.pop(0) if self.turns else None

        async def press():
            await until(lambda: len(self.seen) >= count)
            pressed.set()

        task = asyncio.create_task(press()) if count is not None else None
        yield pressed
        if task:
            task.cancel()


async def test_poll_waits_for_changes_with_the_last_etag(api, server, seen):
    server.script(shown(RUN), http(304, b"", retry_after="0"), shown(COMPLETED, '"5"'))

    run = await poll_until_ended(api, RUN_ID, lambda run: seen.append(run.progress))

    assert (run.status, seen) == ("completed", [40, 100])
    assert [asked.path for asked in server.asked] == [
        f"/v1/runs/{RUN_ID}",
        f"/v1/runs/{RUN_ID}?wait=10",
        f"/v1/runs/{RUN_ID}?wait=10",
    ]


async def test_server_that_does_not_hold_the_poll_is_polled_at_its_interval(api, server):
    server.script(shown(RUN), http(304, b"", retry_after="1"), shown(COMPLETED))
    loop = asyncio.get_running_loop()
    began_at = loop.time()

    await poll_until_ended(api, RUN_ID, lambda _: None)

    assert loop.time() - began_at >= 1


async def test_ctrl_c_and_yes_cancels_and_waits_for_the_end(api, server, seen, bar):
    server.script(shown(RUN), HELD, http(200, RUN), shown(CANCELLED, '"6"'))

    run = await watch_run(api, RUN_ID, bar, interrupts=Keys(seen, 1), confirm=lambda: True)

    assert (run.status, run.credits_charged) == ("cancelled", 2)
    assert server.asked[2].path == f"/v1/runs/{RUN_ID}/cancel"
    assert "idempotency-key" in server.asked[2].headers


async def test_run_that_completes_before_the_cancellation_is_completed(api, server, seen, bar):
    server.script(shown(RUN), HELD, http(200, COMPLETED), shown(COMPLETED, '"6"'))

    run = await watch_run(api, RUN_ID, bar, interrupts=Keys(seen, 1), confirm=lambda: True)

    assert run.status == "completed"


async def test_ctrl_c_and_no_leaves_the_run_and_shows_how_to_watch_it_again(api, server, seen, bar):
    server.script(shown(RUN), HELD)

    with pytest.raises(WatchInterrupted) as left:
        await watch_run(api, RUN_ID, bar, interrupts=Keys(seen, 1), confirm=lambda: False)

    assert left.value.exit_code == 130
    assert f"oslira runs watch {RUN_ID}" in left.value.message
    assert all("/cancel" not in asked.path for asked in server.asked)


async def test_ctrl_c_during_the_cancellation_reports_that_it_is_pending(api, server, seen, bar):
    server.script(shown(RUN), HELD, http(200, RUN), shown(RUN), HELD)

    with pytest.raises(WatchInterrupted, match="the run has not stopped yet"):
        await watch_run(api, RUN_ID, bar, interrupts=Keys(seen, 1, 2), confirm=lambda: True)


async def test_problem_while_watching_is_raised(api, server, bar):
    server.script(problem(404, "run_not_found", "There is no such run."))

    with pytest.raises(Exception, match="no such run"):
        await watch_run(api, RUN_ID, bar, interrupts=Keys([]))
