"""Analysis worker on simulated providers that can halt at any place.

A run's subject may name a place: `begin`, `end`, `before:STEP` or `inside:STEP`, where saving is a step too.
A process with halts enabled creates a file there and waits until it is killed or the file `go_on` exists.
"""

import asyncio
import dataclasses
import logging
import sys
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anthropic  # noqa: F401  preloaded: the imports take seconds
import openai  # noqa: F401
import uvloop

import infrastructure.ai.providers.sdk_clients
import infrastructure.scraping.apify_runs  # noqa: F401
from core.engine.workflow import Queue
from core.processes.worker import WorkerFenced
from core.wiring.bootstrap import read_runtime, start_logs
from core.wiring.engine import engine_config
from core.wiring.resources import open_resources
from core.wiring.slice import WorkerParts
from core.wiring.slices.analysis import save_result, workflows
from features.analysis.application.profile_reader import ProfileReader
from features.analysis.application.save_result import SaveResult
from infrastructure.database.runs.runs import PostgresRuns
from tests.support import until
from tests.system.engine.three_steps import nothing, run_until_terminated
from tests.system.providers.world import Outside

QUEUES = (
    Queue(name="runs", poll_interval_s=0.05, worker_concurrency=40),
    Queue(name="bulk", poll_interval_s=0.05, worker_concurrency=10),
)


class Halts:
    """``go_on``: file that ends every halt once it exists; None disables halts. A halt creates a file in the
    same folder, which is visible also from inside an open transaction."""

    def __init__(self, go_on):
        self._go_on = go_on
        self._places = {}

    def know(self, run):
        self._places[run.id] = run.subject.get("halt_at")

    async def at(self, run_id, place):
        if self._go_on and self._places.get(run_id) == place:
            self._go_on.with_name(str(run_id)).touch()
            await until(self._go_on.exists, timeout_s=300)


class HaltingRuns(PostgresRuns):
    def __init__(self, session, halts):
        super().__init__(session)
        self._halts = halts

    async def begin(self, account_id, run_id, **options):
        if run := await self.find(account_id, run_id):
            self._halts.know(run)
        await self._halts.at(run_id, "begin")
        return await super().begin(account_id, run_id, **options)

    async def progress(self, run, percent, *, step):
        await self._halts.at(run.id, f"before:{step}")
        return await super().progress(run, percent, step=step)

    async def finish(self, run, ending, deliver=None):
        outcome = await super().finish(run, ending, deliver)
        await self._halts.at(run.id, "end")
        return outcome


class HaltingSource:
    """Halts after the scrape was paid for and before its result is stored."""

    def __init__(self, source, halts):
        self._source = source
        self._halts = halts

    async def fetch(self, username, *, posts_max, cost_owner):
        found = await self._source.fetch(username, posts_max=posts_max, cost_owner=cost_owner)
        await self._halts.at(cost_owner.run_id, "inside:scrape")
        return found


class HaltingAnalyst:
    """``refusals``: errors by task; ``held``: tasks that never get a completion."""

    def __init__(self, gateway, halts):
        self._gateway = gateway
        self._halts = halts
        self.refusals = {}
        self.held = set()
        self.asked = []
        self.interrupted = []

    async def complete(self, prompt):
        self.asked.append(prompt.task)
        if error := self.refusals.get(prompt.task):
            await until(lambda: set(self.asked) >= self.held)
            raise error
        try:
            if prompt.task in self.held:
                await asyncio.Event().wait()
            completion = await self._gateway.complete(prompt)
            await self._halts.at(prompt.cost_owner.run_id, f"inside:{prompt.task.rpartition('.')[2]}")
        except asyncio.CancelledError:
            self.interrupted.append(prompt.task)
            raise
        return completion

    def reset(self):
        for seen in (self.refusals, self.held, self.asked, self.interrupted):
            seen.clear()


class HaltingResults:
    def __init__(self, results, halts):
        self._results = results
        self._halts = halts

    async def save(self, analysis):
        await self._results.save(analysis)
        await self._halts.at(analysis.id, "inside:save")


@asynccontextmanager
async def opened(place, simulators_address, *, go_on=None, **limits):
    """Yield an EngineConfig and its analyst."""
    async with open_resources(place) as resources:
        database = resources.database
        halts = Halts(go_on)
        outside = Outside(
            SimpleNamespace(address=simulators_address),
            database,
            resources.costs,
            place.settings.data_dir / "objects",
            None,
        )
        looked_up = outside.profiles(slot_wait_s=60.0, **limits)
        profiles = ProfileReader(
            HaltingSource(looked_up.source, halts), looked_up.cache, looked_up.record, looked_up.now
        )
        analyst = HaltingAnalyst(outside.gateway(), halts)
        stored = save_result(database)
        result = SaveResult(HaltingResults(stored.results, halts), stored.anonymous_results)
        parts = WorkerParts(workflows=workflows(resources, profiles, analyst, result))
        config = engine_config(resources, parts, queues=QUEUES)
        executions = HaltingRuns(database.admin("tests"), halts)
        try:
            yield dataclasses.replace(config, executions=executions, warm_up=nothing), analyst
        finally:
            await outside.close()


def run_worker(simulators_address, environ, go_on):
    """Main function of a worker process; exits with code 1 when the worker was fenced."""
    here = read_runtime(environ)
    start_logs(here.settings, level=logging.ERROR)

    @asynccontextmanager
    async def parts():
        async with opened(here, simulators_address, go_on=go_on) as (made, _):
            yield made

    try:
        uvloop.run(run_until_terminated(parts()))
    except WorkerFenced:
        sys.exit(1)
