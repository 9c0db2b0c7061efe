"""One analysis: asked for, or asked about."""

from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromQuery

from features.analysis.application.ports import StartedRun
from features.analysis.application.quotes import Quotes
from features.analysis.application.starts import AnalysisStarts
from features.analysis.controllers.bodies import AnalysisBody
from features.analysis.controllers.quote_answers import QUOTE_EXAMPLE, QuoteOut, quote_out
from shared.caller import Caller
from shared.ids import RunId
from shared.middleware.access import counts_as, needs
from shared.middleware.answer_headers import RETRY_AFTER, RUN_LOCATION
from shared.middleware.idempotency import effect_id
from shared.middleware.problems import refusals

POLL_AFTER_S = "2"

Asked = Request[Caller, Any, Any]


class StartedOut(msgspec.Struct, frozen=True, kw_only=True):
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


class AnalysisStartsController(Controller):
    path = "/v1/analyses"
    tags = ("Analyses",)

    @post(
        "/",
        operation_id="startAnalysis",
        summary="Analyse a profile",
        status_code=202,
        opt={**needs("runs:write"), **counts_as("analysis")},
        response_headers=(RUN_LOCATION, RETRY_AFTER),
        responses={
            202: ResponseSpec(
                StartedOut,
                description="The run; `Location` is where to follow it",
                examples=[Example(value=STARTED_EXAMPLE)],
            ),
            200: ResponseSpec(
                QuoteOut,
                description="With `dry_run=true`: what it would cost",
                examples=[Example(value=QUOTE_EXAMPLE)],
            ),
            **refusals(402),
        },
    )
    async def start(
        self,
        request: Asked,
        data: AnalysisBody,
        analysis_starts: NamedDependency[AnalysisStarts],
        quotes: NamedDependency[Quotes],
        dry_run: FromQuery[bool] = False,  # noqa: FBT002  a query has names
    ) -> Response[StartedOut | QuoteOut]:
        """Analyse a profile on behalf of a business. The price is set aside now and charged by how the run
        ends, see `GET /v1/refund-policy`. While the same analysis is in progress you get its run, and pay
        once.

        With `dry_run=true` nothing is started: you learn the price, whether you can afford it, what is known
        about the profile, and how long it will take once it is its turn. A test key can ask for nothing else.
        """
        if dry_run:
            return Response(quote_out(await quotes.quote(request.user, data.order)), status_code=200)
        run_id = RunId(effect_id(request.scope))
        out = _started_out(await analysis_starts.start(request.user, run_id, data.order))
        headers = {"Location": out.poll_url, "Retry-After": POLL_AFTER_S}
        return Response(out, status_code=202, headers=headers)


def _started_out(started: StartedRun) -> StartedOut:
    return StartedOut(
        run_id=started.run_id,
        status=started.status,
        poll_url=f"/v1/runs/{started.run_id}",
        credits_held=started.credits_held,
        is_duplicate=started.is_duplicate,
    )
