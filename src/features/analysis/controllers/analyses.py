"""Routes that start, quote, list and read analyses."""

from typing import Annotated
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter

from features.analysis.application.analyses import Analyses
from features.analysis.application.ports import AnalysisFilter
from features.analysis.application.quotes import Quotes
from features.analysis.application.start_analysis import StartAnalysis
from features.analysis.controllers.analysis_schemas import (
    AnalysisEntryResponse,
    AnalysisResponse,
    analysis_response,
    entry_response,
)
from features.analysis.controllers.start_schemas import (
    POLL_AFTER_S,
    QuoteResponse,
    StartAnalysisRequest,
    StartedResponse,
    quote_response,
    started_response,
)
from shared.http.parameters import AuthenticatedRequest, Cursor, Limit
from shared.http.responses import RETRY_AFTER, RUN_LOCATION, ok, problems
from shared.http.route_policy import counts_as, needs
from shared.ids import AnalysisType, BusinessProfileId, LeadId, RunId
from shared.middleware.idempotency import effect_id
from shared.pagination import Page

LeadQuery = Annotated[UUID | None, QueryParameter(description="Only analyses of this lead.")]
BusinessQuery = Annotated[UUID | None, QueryParameter(description="Only analyses for this business profile.")]
TypeQuery = Annotated[
    AnalysisType | None, QueryParameter(name="type", description="Only analyses of this type.")
]


class AnalysesController(Controller):
    path = "/v1/analyses"
    tags = ("Analyses",)
    opt = needs("leads:read")

    @post(
        "/",
        status_code=202,
        opt={**needs("runs:write"), **counts_as("analysis")},
        response_headers=(RUN_LOCATION, RETRY_AFTER),
        responses={
            202: ok(StartedResponse, "The queued run; `Location` is its status URL"),
            200: ok(QuoteResponse, "With `dry_run=true`: the price and the estimated duration"),
            **problems(402),
        },
    )
    async def start_analysis(
        self,
        request: AuthenticatedRequest,
        data: JSONBody[StartAnalysisRequest],
        analysis_starts: NamedDependency[StartAnalysis],
        quotes: NamedDependency[Quotes],
        dry_run: FromQuery[bool] = False,  # noqa: FBT002  a query has names
    ) -> Response[StartedResponse | QuoteResponse]:
        """Analyse a profile for a business.

        The price is held now and charged when the run ends, see `GET /v1/refund-policy`. While the same
        analysis is in progress, the response contains its run and nothing more is charged.

        With `dry_run=true` nothing is started: the response contains the price, whether the account can
        afford it, and the estimated duration after the run starts. `is_cached` and `checks` use only what
        your own account fetched recently. A test key can only send dry runs.
        """
        if dry_run:
            quote = await quotes.quote(request.user, data.analysis)
            return Response(quote_response(quote), status_code=200)
        run_id = RunId(effect_id(request.scope))
        started = started_response(await analysis_starts.start(request.user, run_id, data.analysis))
        return Response(started, headers={"Location": started.poll_url, "Retry-After": POLL_AFTER_S})

    @get("/")
    async def list_analyses(
        self,
        request: AuthenticatedRequest,
        analyses: NamedDependency[Analyses],
        lead_id: LeadQuery = None,
        business_profile_id: BusinessQuery = None,
        analysis_type: TypeQuery = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[AnalysisEntryResponse]:
        """List the account's analyses, newest first, as far back as the account's plan allows.

        Analyses of deleted leads are not included.
        """
        analysis_filter = AnalysisFilter(
            lead_id=lead_id and LeadId(lead_id),
            business_profile_id=business_profile_id and BusinessProfileId(business_profile_id),
            analysis_type=analysis_type,
        )
        page = await analyses.page(request.user, analysis_filter, cursor=cursor, limit=limit)
        return page.map(entry_response)

    @get("/{analysis_id:uuid}")
    async def get_analysis(
        self, request: AuthenticatedRequest, analysis_id: FromPath[UUID], analyses: NamedDependency[Analyses]
    ) -> AnalysisResponse:
        """Get an analysis by its id, which is the id of its run.

        It is available when its run has completed, and at any age.

        `components` are the parts of the score, each with the numbers that it is based on. Model outputs and
        reasons refer to posts by their `label`, components by their `id`; `evidence` contains both.
        `removals` lists text that was removed from model outputs because a profile's text may have injected
        it.
        """
        return analysis_response(await analyses.get(request.user, RunId(analysis_id)))
