from collections.abc import Mapping
from dataclasses import dataclass

from features.runs.application.estimates import Estimates
from features.runs.application.live_runs import LiveRuns, RunView, rendered
from features.runs.application.ports import Measurements, RunFilter, RunQueryStore
from features.runs.domain.errors import RunNotFound
from features.runs.domain.kinds import ResultLink
from features.runs.domain.view import RunResponse, RunSnapshot, run_out
from shared.caller import Caller
from shared.clock import Clock
from shared.ids import RunId
from shared.pagination import Cursor, Page, decode_cursor, page_of

# Polling intervals of waiting requests, without notifications and for queued runs.
LOOK_S_DEAF = 2.0
LOOK_S_QUEUED = 5.0


@dataclass(frozen=True, slots=True)
class RunQueries:
    reads: RunQueryStore
    measurements: Measurements
    estimates: Estimates
    live: LiveRuns
    links: Mapping[str, ResultLink]
    now: Clock

    async def look(self, caller: Caller, run_id: RunId) -> RunView:
        """Reads the run from the database with the caller's rights. Raises RunNotFound."""
        mark = self.live.mark
        sight = await self.reads.find(caller, run_id)
        if sight is None:
            raise RunNotFound
        run = sight.run
        figures = None
        if run.status == "queued":
            figures = await self.measurements.queue_figures(run.account_id, run.id)
        out = run_out(
            sight,
            links=self.links,
            times=await self.estimates.of(run.kind),
            figures=figures,
            at=self.now(),
        )
        view = rendered(run.account_id, out, mark)
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
            is_heard = await self.live.wait(view, min(left_s, self._patience_s(view)))
            if not is_heard and self.live.now_s() >= until_s:
                break
            later = await self.look(caller, RunId(view.out.run_id))
            if later.tag != view.tag:
                return later
            view = later
        return view

    def _patience_s(self, view: RunView) -> float:
        if not self.live.is_hearing:
            return LOOK_S_DEAF
        return LOOK_S_QUEUED if view.out.status == "queued" else float("inf")

    async def page(
        self, caller: Caller, only: RunFilter, *, cursor: str | None, limit: int
    ) -> Page[RunResponse]:
        """Leaves out queue positions, which are counted for one run at a time."""
        found = await self.reads.list(caller, only, after=decode_cursor(cursor), runs_max=limit + 1)
        page = page_of(found, limit, lambda sight: Cursor(sight.run.created_at, sight.run.id))
        return Page([await self._listed(sight) for sight in page.items], page.next_cursor)

    async def _listed(self, sight: RunSnapshot) -> RunResponse:
        times = await self.estimates.of(sight.run.kind)
        return run_out(sight, links=self.links, times=times, figures=None, at=self.now())
