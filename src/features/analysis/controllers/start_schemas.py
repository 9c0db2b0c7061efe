from uuid import UUID

import msgspec

from features.analysis.application.ports import StartedRun

POLL_AFTER_S = "2"


class StartedResponse(msgspec.Struct, frozen=True, kw_only=True):
    run_id: UUID
    status: str
    poll_url: str
    credits_held: int
    is_duplicate: bool


RUN_EXAMPLE = "0f8d4c52-7a0e-4a1c-9d2b-5f6d0e3c1b7a"
STARTED_EXAMPLE = {
    "run_id": RUN_EXAMPLE,
    "status": "queued",
    "poll_url": f"/v1/runs/{RUN_EXAMPLE}",
    "credits_held": 1,
    "is_duplicate": False,
}


def started_out(started: StartedRun) -> StartedResponse:
    return StartedResponse(
        run_id=started.run_id,
        status=started.status,
        poll_url=f"/v1/runs/{started.run_id}",
        credits_held=started.credits_held,
        is_duplicate=started.is_duplicate,
    )
