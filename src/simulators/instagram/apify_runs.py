"""Simulated runs of Apify's actors: duration, end, abort and cost."""

import asyncio
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import uuid4

import msgspec

from simulators.faults.latency import RUN, Latencies
from simulators.faults.provider_requests import RequestRejected
from simulators.instagram.instagram_items import (
    POSTS_DEFAULT,
    Item,
    names_of,
    post_items,
    post_items_count,
    profile_item,
)
from simulators.instagram.profiles import POSTS_MAX

RUNS_STORED_MAX = 5_000
RUNS_MAX = 32  # concurrent runs
ABORT_S = 0.05  # between the abort request and the end
ITEM_DOLLARS = 0.0026
MEGABYTES_DEFAULT = 1_024

End = Literal["SUCCEEDED", "FAILED", "TIMED-OUT"]
FINISHED = frozenset({"SUCCEEDED", "FAILED", "TIMED-OUT", "ABORTED"})


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    timeout_s: int
    megabytes: int
    items_max: int | None
    dollars_max: float | None


class ActorRun:
    def __init__(
        self, actor: str, run_input: dict[str, Any], options: RunOptions, user_agent: str = ""
    ) -> None:
        self.id, self.dataset_id = uuid4().hex[:17], uuid4().hex[:17]
        self.actor, self.run_input, self.options = actor, run_input, options
        self.user_agent = user_agent  # of the client that started the run
        self.status = "READY"
        self.started_at = datetime.now(UTC)
        self.finished_at: datetime | None = None
        self.finished = asyncio.Event()

    def end(self, status: str) -> None:
        self.status, self.finished_at = status, datetime.now(UTC)
        self.finished.set()

    @property
    def seconds(self) -> float:
        return ((self.finished_at or datetime.now(UTC)) - self.started_at).total_seconds()

    def items(self) -> list[Item]:
        """Returns the found items up to the run's limit; none unless the run succeeded."""
        found: list[Item] = []
        for name in names_of(self.run_input) if self.status == "SUCCEEDED" else ():
            if self._wants_posts:
                found += post_items(name, self._posts_max, self.started_at)
            else:
                found.append(profile_item(name, self._posts_max, self.started_at))
        return found[: self._items_max(len(found))]

    def items_count(self) -> int:
        """Returns the number of ``items`` without creating them."""
        names = names_of(self.run_input) if self.status == "SUCCEEDED" else []
        wants_posts, posts_max = self._wants_posts, self._posts_max
        counts = (post_items_count(name, posts_max) if wants_posts else 1 for name in names)
        return self._items_max(sum(counts))

    @property
    def dollars(self) -> float:
        """Every found item costs, including items that report an error."""
        return round(self.items_count() * ITEM_DOLLARS, 6)

    @property
    def _wants_posts(self) -> bool:
        return self.actor.endswith("instagram-scraper") and self.run_input.get("resultsType") != "details"

    @property
    def _posts_max(self) -> int:
        return min(int(self.run_input.get("resultsLimit") or POSTS_DEFAULT), POSTS_MAX)

    def _items_max(self, found: int) -> int:
        limits = [found]
        if self.options.items_max:
            limits.append(self.options.items_max)
        if self.options.dollars_max is not None:
            limits.append(int(self.options.dollars_max / ITEM_DOLLARS + 1e-9))
        return min(limits)


class ActorRuns:
    """The runs of one account."""

    def __init__(self, latencies: Latencies) -> None:
        self._latencies = latencies
        self._runs: OrderedDict[str, ActorRun] = OrderedDict()
        self._working: dict[str, asyncio.Task[None]] = {}
        self.reset_settings()
        self.clear()

    def reset_settings(self) -> None:
        self.runs_max = RUNS_MAX
        self.end: End = "SUCCEEDED"

    def clear(self) -> None:
        """Deletes all runs, including active ones."""
        for task in self._working.values():
            task.cancel()
        self._working.clear()
        self._runs.clear()
        self.started = self.aborted = self.running_max = 0

    @property
    def running(self) -> int:
        return len(self._working)

    def start(
        self, actor: str, run_input: dict[str, Any], options: RunOptions, *, user_agent: str = ""
    ) -> ActorRun:
        if self.running >= self.runs_max:
            message = (
                f"By launching this job you will exceed your limit of {self.runs_max} concurrent Actor runs."
            )
            raise RequestRejected(402, "concurrent-runs-limit-exceeded", message)
        run = ActorRun(actor, run_input, options, user_agent)
        self._runs[run.id] = run
        if len(self._runs) > RUNS_STORED_MAX:
            self._runs.popitem(last=False)
        self._working[run.id] = asyncio.create_task(self._work(run))
        self.started += 1
        self.running_max = max(self.running_max, self.running)
        return run

    def of_actor(self, actor: str, *, since: datetime | None) -> list[ActorRun]:
        """Returns the runs, oldest first."""
        return [
            run
            for run in self._runs.values()
            if run.actor == actor and (since is None or run.started_at >= since)
        ]

    def by_dataset(self, dataset_id: str) -> ActorRun:
        found = next((run for run in reversed(self._runs.values()) if run.dataset_id == dataset_id), None)
        if found is None:
            raise RequestRejected(404, "record-not-found", "Dataset was not found")
        return found

    def by_id(self, run_id: str) -> ActorRun:
        if run_id not in self._runs:
            raise RequestRejected(404, "record-not-found", "Actor run was not found")
        return self._runs[run_id]

    def abort(self, run: ActorRun) -> None:
        """Idempotent; a run that has ended stays unchanged."""
        if run.status not in {"READY", "RUNNING"}:
            return
        run.status = "ABORTING"
        self.aborted += 1
        self._working[run.id].cancel()
        self._working[run.id] = asyncio.create_task(self._stop(run))

    async def _work(self, run: ActorRun) -> None:
        lasts_s, end = self._latencies.draw_s(RUN), self.end
        if run.options.timeout_s and lasts_s > run.options.timeout_s:
            lasts_s, end = run.options.timeout_s, "TIMED-OUT"
        await asyncio.sleep(0)  # lets other tasks see the run in state READY
        run.status = "RUNNING"
        await asyncio.sleep(lasts_s)
        run.end(end)
        self._working.pop(run.id, None)

    async def _stop(self, run: ActorRun) -> None:
        await asyncio.sleep(ABORT_S)
        run.end("ABORTED")
        self._working.pop(run.id, None)
