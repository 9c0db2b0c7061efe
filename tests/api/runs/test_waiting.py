"""Long polls and event streams of runs."""

import asyncio
import dataclasses
import json

import pytest

from core.app import create_app
from features.runs.application.event_stream import STREAMS_MAX, RunEventStreams
from features.runs.application.live_runs import LiveRuns
from tests.api.runs.conftest import DONE, RUNS
from tests.support import until
from tests.support.problems import assert_problem

pytestmark = pytest.mark.usefixtures("hearing")


class Streaming:
    """Response of one streaming request, frame by frame; the usual client would buffer it."""

    def __init__(self, app, path, headers):
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": b"",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "client": ("198.51.100.1", 1),
            "server": ("test", 80),
        }
        self.status = None
        self.events = []
        self._gone = asyncio.Event()
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self):
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.events += [frame for frame in message["body"].decode().split("\n\n") if frame]
            if not message.get("more_body"):
                self._gone.set()  # the server disconnects after the last message

    async def hang_up(self):
        self._gone.set()
        await self.task

    @property
    def frames(self):
        """Event name and id of each frame; comments unchanged."""
        return [
            event
            if event.startswith(":")
            else (fields := dict(line.split(": ", 1) for line in event.splitlines()))["event"]
            + " "
            + fields["id"]
            for event in self.events
        ]


@pytest.fixture
def stream(client, book):
    app = client._transport.app  # noqa: SLF001  creating another app takes a second
    streams = []

    def open_one(run_id, app=app, **headers):
        streams.append(Streaming(app, f"{RUNS}/{run_id}/events", {**book.headers, **headers}))
        return streams[-1]

    yield open_one
    for one in streams:
        one.task.cancel()


async def waiting(live, run, count=1):
    await until(lambda: len(live._waiters.get(str(run.id), ())) == count)  # noqa: SLF001


async def test_long_poll_returns_at_the_next_change(live, book, get, poll):
    run = await book.begun()
    seen = await get(run.id)
    asked = asyncio.create_task(poll(run.id, seen, wait=25))
    await waiting(live, run)

    await book.runs.progress(run, 40, step="core")

    async with asyncio.timeout(5):
        answer = await asked
    assert (answer.status_code, answer.json()["progress"]) == (200, 40)


async def test_long_poll_with_an_outdated_tag_returns_at_once(book, get):
    run = await book.begun()
    async with asyncio.timeout(5):
        answer = await get(run.id, {"If-None-Match": '"1.x"'}, wait=25)

    assert answer.status_code == 200


async def test_wait_without_a_tag_returns_at_the_next_change(live, book, get):
    run = await book.begun()
    asked = asyncio.create_task(get(run.id, wait=30))
    await waiting(live, run)

    await book.runs.progress(run, 40, step="core")

    async with asyncio.timeout(5):
        answer = await asked
    assert (answer.status_code, answer.json()["progress"]) == (200, 40)


async def test_wait_without_a_tag_returns_at_the_end(live, book, get):
    run = await book.begun()
    asked = asyncio.create_task(get(run.id, wait=30))
    await waiting(live, run)

    await book.runs.finish(run, DONE)

    async with asyncio.timeout(5):
        assert (await asked).json()["status"] == "completed"


async def test_wait_without_a_tag_returns_the_unchanged_run_on_timeout(book, get):
    run = await book.begun()

    answer = await get(run.id, wait=1)

    assert (answer.status_code, answer.json()["version"]) == (200, run.version)


async def test_wait_for_an_ended_run_returns_at_once(book, get):
    run = await book.ended()
    async with asyncio.timeout(5):
        answer = await get(run.id, wait=30)

    assert (answer.status_code, answer.json()["status"]) == (200, "completed")


@pytest.mark.parametrize("wait", [0, -1, 31])
async def test_wait_is_1_to_30_seconds(book, get, wait):
    run = await book.ended()

    assert_problem(await get(run.id, wait=wait), 422, "wait_invalid")


async def test_long_poll_of_an_ended_run_returns_at_once(book, get, poll):
    run = await book.ended()
    seen = await get(run.id)
    async with asyncio.timeout(5):
        answer = await poll(run.id, seen, wait=25)

    assert answer.status_code == 304


async def test_long_poll_ends_on_timeout(book, get, poll):
    run = await book.begun()
    seen = await get(run.id)

    assert (await poll(run.id, seen, wait=1)).status_code == 304


async def test_a_thousand_waiters_of_one_run_are_all_woken(application, live, book):
    views = application.dependencies["run_queries"]
    caller = (
        await application.dependencies["authenticator"].authenticate(
            book.headers["Authorization"].encode(), None
        )
    ).caller
    run = await book.begun()
    view = await views.get(caller, run.id)
    tasks: dict[int, asyncio.Task[bool]] = {}

    def all_wait():
        """Late notifications about the new account end some of the waits, so these are started again."""
        for number in range(1_000):
            if number not in tasks or tasks[number].done():
                tasks[number] = asyncio.create_task(live.wait(view, 60))
        return len(live._waiters.get(str(run.id), ())) == 1_000  # noqa: SLF001

    await until(all_wait)

    await book.runs.progress(run, 40, step="core")

    assert all(await asyncio.gather(*tasks.values()))
    assert not live._waiters  # noqa: SLF001


async def test_shutdown_ends_long_polls_and_streams(application, client_of, book):
    queries = application.dependencies["run_queries"]
    views = dataclasses.replace(queries, live=LiveRuns(queries.now))
    app = application.replacing(live_runs=views.live, run_queries=views, run_streams=RunEventStreams(views))
    run = await book.begun()
    client = client_of(app)
    seen = await client.get(f"{RUNS}/{run.id}", headers=book.headers)
    known = {**book.headers, "If-None-Match": seen.headers["etag"]}
    polled = asyncio.create_task(client.get(f"{RUNS}/{run.id}", headers=known, params={"wait": 25}))
    streamed = Streaming(create_app(app), f"{RUNS}/{run.id}/events", book.headers)
    await waiting(views.live, run, 2)

    views.live.close()

    async with asyncio.timeout(5):
        assert (await polled).status_code == 304
        await streamed.task
    assert streamed.frames == [f"run {run.version}"]


async def test_stream_sends_every_change_until_the_end(live, stream, book):
    run = await book.begun()
    opened = stream(run.id)
    await waiting(live, run)
    await book.runs.progress(run, 40, step="core")
    await until(lambda: len(opened.events) == 2)

    await book.runs.finish(run, DONE)
    async with asyncio.timeout(5):
        await opened.task

    assert opened.status == 200
    assert opened.frames == [f"run {run.version + number}" for number in range(3)] + [
        f"end {run.version + 2}"
    ]
    data = json.loads(opened.events[-2].partition("data: ")[2])
    assert (data["status"], data["version"]) == ("completed", run.version + 2)


async def test_stream_resumes_after_the_last_event_id(live, stream, book):
    run = await book.begun()
    await book.runs.progress(run, 40, step="core")
    behind = stream(run.id, **{"Last-Event-ID": str(run.version)})
    level = stream(run.id, **{"Last-Event-ID": str(run.version + 1)})
    await waiting(live, run, 2)

    await book.runs.finish(run, DONE)
    await behind.task
    await level.task

    version = run.version
    assert behind.frames == [f"run {version + 1}", f"run {version + 2}", f"end {version + 2}"]
    assert level.frames == [f"run {version + 2}", f"end {version + 2}"]


async def test_stream_of_an_ended_run_sends_only_the_end(client, book):
    run = await book.ended()
    headers = {**book.headers, "Last-Event-ID": str(run.version + 1)}

    answer = await client.get(f"{RUNS}/{run.id}/events", headers=headers)

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text == f"id: {run.version + 1}\nevent: end\ndata: {{}}\n\n"


async def test_stream_sends_heartbeats_and_ends_when_access_is_lost(application, stream, owner, book):
    streams = RunEventStreams(application.dependencies["run_queries"], heartbeat_s=0.05)
    run = await book.begun()
    opened = stream(run.id, create_app(application.replacing(run_streams=streams)))
    await until(lambda: ": alive" in opened.events)

    await owner.execute("delete from memberships where account_id = $1", book.account_id)

    async with asyncio.timeout(5):
        await opened.task
    assert [one for one in opened.frames if one.startswith("end")] == []


async def test_streams_per_caller_are_limited(live, stream, client, book):
    run = await book.begun()
    opened = [stream(run.id) for _ in range(STREAMS_MAX)]
    await waiting(live, run, STREAMS_MAX)

    refused = await client.get(f"{RUNS}/{run.id}/events", headers=book.headers)
    assert_problem(refused, 429, "too_many_streams")
    assert refused.headers["retry-after"] == "15"

    await opened[0].hang_up()
    again = stream(run.id)
    await until(lambda: again.status == 200)
