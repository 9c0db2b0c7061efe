from collections.abc import Mapping
from dataclasses import dataclass

from features.runs.application.estimates import Estimates
from features.runs.application.live_runs import LiveRuns, RunView, render
from features.runs.application.ports import Measurements, RunFilter, RunQueryStore
from features.runs.domain.errors import RunNotFound
from features.runs.domain.kinds import ResultLink
from features.runs.domain.view import RunResponse, RunSnapshot, run_response
from shared.caller import Caller
from shared.clock import Clock
from shared.ids import RunId
from shared.pagination import Cursor, Page, decode_cursor, page_of

# Polling intervals of waiting requests, without notifications and for queued runs.
POLL_S_UNNOTIFIED = 2.0
POLL_S_QUEUED = 5.0


@dataclass(frozen=True, slots=True)
class RunQueries:
    reads: RunQueryStore
    measurements: Measurements
    estimates: Estimates
    live: LiveRuns
    links: Mapping[str, ResultLink]
    now: Clock

    async def get(self, caller: Caller, run_id: RunId) -> RunView:
        """Reads the run from the database with the caller's rights. Raises RunNotFound."""
        mark = self.live.mark
        snapshot = await self.reads.find(caller, run_id)
        if snapshot is None:
            raise RunNotFound
        run = snapshot.run
        figures = None
        if run.status == "queued":
            figures = await self.measurements.queue_figures(run.account_id, run.id)
        out = run_response(
            snapshot,
            links=self.links,
            times=await self.estimates.of(run.kind),
            figures=figures,
            at=self.now(),
        )
        view = render(run.account_id, out, mark)
        self.live.show(caller, view)
        return view

    async def wait(self, caller: Caller, view: RunView, wait_s: float) -> RunView:
        """Returns the next view that differs, or the current one on timeout, shutdown or if the run has
        ended.
        """
        until_s = self.live.now_s() + wait_s
        while not view.is_ended and not self.live.is_closing:
            left_s = until_s - self.live.now_s()
            if left_s <= 0:
                break
            is_notified = await self.live.wait(view, min(left_s, self._poll_interval_s(view)))
            if not is_notified and self.live.now_s() >= until_s:
                break
            later = await self.get(caller, RunId(view.out.run_id))
            if later.tag != view.tag:
                return later
            view = later
        return view

    def _poll_interval_s(self, view: RunView) -> float:
        if not self.live.is_listening:
            return POLL_S_UNNOTIFIED
        return POLL_S_QUEUED if view.out.status == "queued" else float("inf")

    async def page(
        self, caller: Caller, filters: RunFilter, *, cursor: str | None, limit: int
    ) -> Page[RunResponse]:
        """Leaves out queue positions, which are counted for one run at a time."""
        found = await self.reads.list(caller, filters, after=decode_cursor(cursor), runs_max=limit + 1)
        page = page_of(found, limit, lambda snapshot: Cursor(snapshot.run.created_at, snapshot.run.id))
        return Page([await self._listed(snapshot) for snapshot in page.items], page.next_cursor)

    async def _listed(self, snapshot: RunSnapshot) -> RunResponse:
        times = await self.estimates.of(snapshot.run.kind)
        return run_response(snapshot, links=self.links, times=times, figures=None, at=self.now())
