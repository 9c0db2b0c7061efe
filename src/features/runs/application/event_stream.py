from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from uuid import UUID

from features.runs.application.live_runs import RunView
from features.runs.application.run_queries import POLL_S_UNNOTIFIED, RunQueries
from features.runs.domain.errors import TooManyStreams
from shared.caller import Caller
from shared.errors import DomainError, Unavailable
from shared.ids import RunId

STREAMS_MAX = 20
HEARTBEAT_S = 15.0


@dataclass(frozen=True, slots=True)
class RunEventStreams:
    """Streams of a run's changes, limited per caller."""

    views: RunQueries
    heartbeat_s: float = HEARTBEAT_S
    _open: Counter[UUID] = field(default_factory=Counter[UUID], init=False)

    def check_room(self, caller: Caller) -> None:
        """Raises TooManyStreams."""
        if self._open[caller.id] >= STREAMS_MAX:
            raise TooManyStreams(limit=STREAMS_MAX)

    async def follow(
        self, caller: Caller, view: RunView, *, seen_version: int
    ) -> AsyncGenerator[RunView | None]:
        """Yields the versions after ``seen_version``, possibly skipping some, and None as a heartbeat. Ends
        when the run ends, when the process shuts down, and when the caller loses access.
        """
        self._open[caller.id] += 1
        try:
            while True:
                if view.out.version > seen_version:
                    seen_version = view.out.version
                    yield view
                if view.is_ended or self.views.live.is_closing:
                    return
                if not await self.views.live.wait(view, self._poll_interval_s()):
                    yield None
                view = await self._get_again(caller, view)
        except DomainError:
            return  # the caller lost access
        finally:
            self._open[caller.id] -= 1
            if not self._open[caller.id]:
                del self._open[caller.id]

    def _poll_interval_s(self) -> float:
        return self.heartbeat_s if self.views.live.is_listening else POLL_S_UNNOTIFIED

    async def _get_again(self, caller: Caller, view: RunView) -> RunView:
        try:
            return await self.views.get(caller, RunId(view.out.run_id))
        except Unavailable:
            return view  # the next read may succeed
