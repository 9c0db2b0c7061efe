from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Request, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromPath, QueryParameter

from features.analysis.application.analyses import Analyses
from features.analysis.application.ports import AnalysisFilter
from features.analysis.controllers.analysis_answers import AnalysesOut, AnalysisOut, analysis_out, entry_out
from features.analysis.controllers.examples import ANALYSIS_EXAMPLE, ENTRY_EXAMPLE
from features.analysis.controllers.lead_queries import OfBusiness
from features.analysis.domain.leads import BusinessProfileId, LeadId
from features.analysis.domain.profile import AnalysisType
from shared.caller import Caller
from shared.ids import RunId
from shared.middleware.access import needs
from shared.middleware.parameters import Cursor, Limit

OfLead = Annotated[UUID | None, QueryParameter(description="Of this lead alone.")]
OfType = Annotated[AnalysisType | None, QueryParameter(name="type", description="Of this type alone.")]
Kept = NamedDependency[Analyses]


class AnalysesReadController(Controller):
    path = "/v1/analyses"
    tags = ("Analyses",)
    opt = needs("leads:read")

    @get(
        "/",
        operation_id="listAnalyses",
        summary="List",
        responses={
            200: ResponseSpec(
                AnalysesOut,
                description="A page",
                examples=[Example(value={"items": [ENTRY_EXAMPLE], "next_cursor": None})],
            ),
        },
    )
    async def page(
        self,
        request: Request[Caller, Any, Any],
        analyses: Kept,
        lead_id: OfLead = None,
        business_profile_id: OfBusiness = None,
        analysis_type: OfType = None,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> AnalysesOut:
        """What the account's runs have delivered, newest first, as far back as the account's plan goes.
        Those of deleted leads are not among them.
        """
        only = AnalysisFilter(
            lead_id=lead_id and LeadId(lead_id),
            business_profile_id=business_profile_id and BusinessProfileId(business_profile_id),
            analysis_type=analysis_type,
        )
        page = await analyses.page(request.user, only, cursor=cursor, limit=limit)
        return AnalysesOut(items=[entry_out(entry) for entry in page.items], next_cursor=page.next_cursor)

    @get(
        "/{analysis_id:uuid}",
        operation_id="getAnalysis",
        summary="Get",
        responses={
            200: ResponseSpec(
                AnalysisOut, description="All of it", examples=[Example(value=ANALYSIS_EXAMPLE)]
            ),
        },
    )
    async def read(
        self, request: Request[Caller, Any, Any], analysis_id: FromPath[UUID], analyses: Kept
    ) -> AnalysisOut:
        """An analysis has its run's id, and is here from the moment its run has completed. However old it
        is, it can be read by its id.

        `components` are the parts of the score, each with the numbers it rests on. Answers and reasons name
        posts by their `label`, components by their `id`; `evidence` has both. `removals` is what was taken
        out of the models' answers because strangers' text may have put it there.
        """
        return analysis_out(await analyses.get(request.user, RunId(analysis_id)))
