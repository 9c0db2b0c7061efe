"""Routes that start, quote, list and read analyses."""

from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromPath, FromQuery, QueryParameter

from features.analysis.application.analyses import Analyses
from features.analysis.application.ports import AnalysisFilter
from features.analysis.application.quotes import Quotes
from features.analysis.application.start_analysis import StartAnalysis
from features.analysis.controllers.analysis_schemas import (
    AnalysesResponse,
    AnalysisResponse,
    analysis_out,
    entry_out,
)
from features.analysis.controllers.examples import ANALYSIS_EXAMPLE, ENTRY_EXAMPLE
from features.analysis.controllers.quote_schemas import QUOTE_EXAMPLE, QuoteResponse, quote_out
from features.analysis.controllers.request_schemas import AnalysisBody
from features.analysis.controllers.start_schemas import (
    POLL_AFTER_S,
    STARTED_EXAMPLE,
    StartedResponse,
    started_out,
)
from shared.caller import Caller
from shared.http.parameters import Cursor, Limit
from shared.http.problems import problem_responses
from shared.http.response_headers import RETRY_AFTER, RUN_LOCATION
from shared.http.route_policy import counts_as, needs
from shared.ids import AnalysisType, BusinessProfileId, LeadId, RunId
from shared.middleware.idempotency import effect_id

OfLead = Annotated[UUID | None, QueryParameter(description="Of this lead alone.")]
OfType = Annotated[AnalysisType | None, QueryParameter(name="type", description="Of this type alone.")]
OfBusiness = Annotated[UUID | None, QueryParameter(description="Of this business profile alone.")]
Kept = NamedDependency[Analyses]
Asked = Request[Caller, Any, Any]


class AnalysesController(Controller):
    path = "/v1/analyses"
    tags = ("Analyses",)
    opt = needs("leads:read")

    @post(
        "/",
        operation_id="startAnalysis",
        summary="Analyse a profile",
        status_code=202,
        opt={**needs("runs:write"), **counts_as("analysis")},
        response_headers=(RUN_LOCATION, RETRY_AFTER),
        responses={
            202: ResponseSpec(
                StartedResponse,
                description="The run; `Location` is where to follow it",
                examples=[Example(value=STARTED_EXAMPLE)],
            ),
            200: ResponseSpec(
                QuoteResponse,
                description="With `dry_run=true`: what it would cost",
                examples=[Example(value=QUOTE_EXAMPLE)],
            ),
            **problem_responses(402),
        },
    )
    async def start(
        self,
        request: Asked,
        data: AnalysisBody,
        analysis_starts: NamedDependency[StartAnalysis],
        quotes: NamedDependency[Quotes],
        dry_run: FromQuery[bool] = False,  # noqa: FBT002  a query has names
    ) -> Response[StartedResponse | QuoteResponse]:
        """Analyse a profile on behalf of a business. The price is set aside now and charged by how the run
        ends, see `GET /v1/refund-policy`. While the same analysis is in progress you get its run, and pay
        once.

        With `dry_run=true` nothing is started: you learn the price, whether you can afford it, and how long
        it will take once it is its turn. `is_cached` and `checks` state what runs of your own account found
        out about the profile recently. A test key can ask for nothing else.
        """
        if dry_run:
            return Response(quote_out(await quotes.quote(request.user, data.order)), status_code=200)
        run_id = RunId(effect_id(request.scope))
        out = started_out(await analysis_starts.start(request.user, run_id, data.order))
        headers = {"Location": out.poll_url, "Retry-After": POLL_AFTER_S}
        return Response(out, status_code=202, headers=headers)

    @get(
        "/",
        operation_id="listAnalyses",
        summary="List",
        responses={
            200: ResponseSpec(
                AnalysesResponse,
                description="A page",
                examples=[Example(value={"items": [ENTRY_EXAMPLE], "next_cursor": None})],
            ),
        },
    )
    async def page(
        self,
        request: Asked,
        analyses: Kept,
        lead_id: OfLead = None,
        business_profile_id: OfBusiness = None,
        analysis_type: OfType = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> AnalysesResponse:
        """What the account's runs have delivered, newest first, as far back as the account's plan goes.
        Those of deleted leads are not among them.
        """
        only = AnalysisFilter(
            lead_id=lead_id and LeadId(lead_id),
            business_profile_id=business_profile_id and BusinessProfileId(business_profile_id),
            analysis_type=analysis_type,
        )
        page = await analyses.page(request.user, only, cursor=cursor, limit=limit)
        return AnalysesResponse(
            items=[entry_out(entry) for entry in page.items], next_cursor=page.next_cursor
        )

    @get(
        "/{analysis_id:uuid}",
        operation_id="getAnalysis",
        summary="Get",
        responses={
            200: ResponseSpec(
                AnalysisResponse, description="All of it", examples=[Example(value=ANALYSIS_EXAMPLE)]
            ),
        },
    )
    async def read(self, request: Asked, analysis_id: FromPath[UUID], analyses: Kept) -> AnalysisResponse:
        """An analysis has its run's id, and is here from the moment its run has completed. However old it
        is, it can be read by its id.

        `components` are the parts of the score, each with the numbers it rests on. Answers and reasons name
        posts by their `label`, components by their `id`; `evidence` has both. `removals` is what was taken
        out of the models' answers because strangers' text may have put it there.
        """
        return analysis_out(await analyses.get(request.user, RunId(analysis_id)))
