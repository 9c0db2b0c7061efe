from dataclasses import dataclass

from features.runs.application.live_runs import RunView
from features.runs.application.ports import RunRetries, RunStarts
from features.runs.application.run_queries import RunQueries
from features.runs.domain.errors import RunNotFound
from features.runs.domain.refunds import REFUND_POLICY_VERSION
from features.runs.domain.run import Run
from shared.caller import Caller
from shared.ids import RunId


@dataclass(frozen=True, slots=True)
class Cancellations:
    views: RunQueries
    runs: RunStarts

    async def cancel(self, caller: Caller, run_id: RunId) -> RunView:
        """Returns the run after the request: ended, or with cancellation requested. Idempotent. Raises
        RunNotFound.
        """
        view = await self.views.get(caller, run_id)
        outcome, _ = await self.runs.request_cancel(view.account_id, run_id)
        if outcome == "unknown":
            raise RunNotFound
        return await self.views.get(caller, run_id)


@dataclass(frozen=True, slots=True)
class Retries:
    views: RunQueries
    retries: RunRetries

    async def retry(self, caller: Caller, tried_id: RunId, run_id: RunId) -> Run:
        """Returns the new run, or the run in progress for the same work. Idempotent by ``run_id``. Raises
        RunNotFound, RunNotRetryable, and the errors of a first start of the same work.
        """
        tried = await self.views.get(caller, tried_id)
        run = await self.retries.retry(
            tried.account_id,
            tried_id,
            run_id,
            user_id=caller.user_id if caller.kind == "user" else None,
            api_key_id=caller.id if caller.kind == "api_key" else None,
            refund_policy=REFUND_POLICY_VERSION,
        )
        if run is None:
            raise RunNotFound
        return run
