"""Start and status of an analysis over HTTP: the two most used routes."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid4

import httpx
from analyses import PATH, begin
from customers import Customer, make_customers
from place import BenchFailed, Place
from processes import empty_app, oslira
from rounds import Pair, Round
from runs import forget_runs
from tenants import open_database
from tools import Load, wrk, wrk_load

from infrastructure.database.runs.runs import PostgresRuns
from infrastructure.database.runs.workers import PostgresWorkerRegistry
from shared.ids import AccountId, RunId

CUSTOMERS_COUNT = 32
RATE_DEMANDED = 150.0

# Customers in turn, another one for each request. The argument makes names differ from the last call's.
START = """
local customers = {{{customers}}}
local prefix, number = "", 0
init = function(arguments)
    prefix = arguments[1]
end
request = function()
    number = number + 1
    local customer = customers[number % #customers + 1]
    local headers = {{["Authorization"] = "Bearer " .. customer[1], ["Content-Type"] = "application/json"}}
    local body = string.format(
        '{{"username": "%s%d", "type": "light", "business_profile_id": "%s"}}', prefix, number, customer[2])
    return wrk.format("POST", nil, headers, body)
end
done = function(summary, latency)
    io.write(string.format("p95: %d us\\n", latency:percentile(95)))
end
"""
POLL = """
local polls = {{{polls}}}
local requests, number = {{}}, 0
init = function()
    for index, poll in ipairs(polls) do
        local headers = {{["Authorization"] = "Bearer " .. poll[1], ["If-None-Match"] = poll[3]}}
        requests[index] = wrk.format("GET", poll[2], headers)
    end
end
request = function()
    number = number % #requests + 1
    return requests[number]
end
"""


class Poll(NamedTuple):
    token: str
    path: str
    entity_tag: str


@asynccontextmanager
async def start_and_empty_route(place: Place) -> AsyncGenerator[Round]:
    """High percentile of an API process without a worker, against an application that does nothing."""
    async with _starts(place) as (script, started), empty_app(place) as floor:

        async def measure_round(seconds: int) -> Pair:
            ours = await started(seconds)
            nothing = await wrk_load(f"{floor}/", seconds, script, _prefix())
            return Pair(subject=ours.p95_us, floor=nothing.p95_us)

        yield measure_round


@asynccontextmanager
async def starts_and_what_is_demanded(place: Place) -> AsyncGenerator[Round]:
    async with _starts(place) as (_, started):

        async def measure_round(seconds: int) -> Pair:
            return Pair(subject=(await started(seconds)).requests_per_s, floor=RATE_DEMANDED)

        yield measure_round


@asynccontextmanager
async def unchanged_poll_and_empty_route(place: Place) -> AsyncGenerator[Round]:
    """Polls of runs within a step, by clients that already have that state."""
    async with oslira(place) as subject, empty_app(place) as floor:
        try:
            runs = await _runs_at_work(place, await make_customers(place, subject, CUSTOMERS_COUNT), subject)

            async def measure_round(seconds: int) -> Pair:
                polls = await _polls(subject, runs)
                script = _script(place, "poll", POLL.format(polls=_lua(polls)))
                ours = await wrk(subject, seconds, {}, script)
                await _check_unchanged(subject, polls)
                return Pair(subject=ours, floor=await wrk(f"{floor}/", seconds, {}))

            yield measure_round
        finally:
            await forget_runs(place.owner)


@asynccontextmanager
async def _starts(place: Place) -> AsyncGenerator[tuple[Path, Callable[[int], Awaitable[Load]]]]:
    """Starts from an empty queue each time: the first run of each customer is queued, the others wait."""
    async with oslira(place) as address:
        customers = await make_customers(place, address, CUSTOMERS_COUNT)
        pairs = [(customer.token, customer.business_profile_id) for customer in customers]
        script = _script(place, "start", START.format(customers=_lua(pairs)))

        async def started(seconds: int) -> Load:
            load = await wrk_load(address + PATH, seconds, script, _prefix())
            runs_count = await place.owner.fetchval("select count(*) from public.runs")
            await forget_runs(place.owner)
            if runs_count < load.requests_count:
                raise BenchFailed(f"{load.requests_count} requests started {runs_count} runs.")
            return load

        try:
            yield script, started
        finally:
            await forget_runs(place.owner)


async def _runs_at_work(place: Place, customers: list[Customer], address: str) -> list[tuple[Customer, UUID]]:
    """Begins runs as a worker does."""
    async with (
        httpx.AsyncClient(base_url=address, timeout=30) as http,
        open_database(place) as database,
    ):
        session, executor = database.admin("benchmark"), str(uuid4())
        await PostgresWorkerRegistry(session).register(executor, host="bench", queues=[])
        runs = PostgresRuns(session)
        begun: list[tuple[Customer, UUID]] = []
        for customer in customers:
            run_id = await begin(http, customer, _prefix(), "light")
            account_id = AccountId(customer.account_id)
            outcome, run = await runs.begin(account_id, RunId(run_id), executor=executor, attempts_max=1)
            if run is None or await runs.progress(run, 40, step="light") != "done":
                raise BenchFailed(f"A run could not be begun: {outcome}")
            begun.append((customer, run_id))
    return begun


async def _polls(address: str, runs: list[tuple[Customer, UUID]]) -> list[Poll]:
    polls: list[Poll] = []
    async with httpx.AsyncClient(base_url=address, timeout=30) as http:
        for customer, run_id in runs:
            path = f"/v1/runs/{run_id}"
            answer = await http.get(path, headers=customer.headers)
            if "etag" not in answer.headers:
                raise BenchFailed(f"{path} answers {answer.status_code} without an ETag: {answer.text}")
            polls.append(Poll(customer.token, path, answer.headers["etag"]))
    return polls


async def _check_unchanged(address: str, polls: list[Poll]) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=30) as http:
        for poll in polls:
            headers = {"Authorization": f"Bearer {poll.token}", "If-None-Match": poll.entity_tag}
            answer = await http.get(poll.path, headers=headers)
            if answer.status_code != httpx.codes.NOT_MODIFIED:
                raise BenchFailed(f"{poll.path} answers {answer.status_code} to what is unchanged.")


def _prefix() -> str:
    return f"bench{uuid4().hex[:8]}_"


def _lua(rows: list[tuple[str, ...]] | list[Poll]) -> str:
    return ", ".join("{" + ", ".join(f"[[{value}]]" for value in row) + "}" for row in rows)


def _script(place: Place, name: str, text: str) -> Path:
    path = place.folder / f"{name}.lua"
    path.write_text(text, encoding="ascii")
    return path
