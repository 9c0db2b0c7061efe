from collections.abc import AsyncIterator
from typing import Any

from litestar import Controller, Request, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromQuery
from litestar.response import Stream

from features.analysis.application.leads import Leads
from features.analysis.controllers.lead_answers import csv_text
from features.analysis.controllers.lead_queries import (
    Niche,
    OfBusiness,
    OfType,
    ScoreMax,
    ScoreMin,
    Tiers,
    Words,
    lead_filter,
)
from features.analysis.domain.leads import CSV_COLUMNS, Lead
from shared.caller import Caller
from shared.middleware.access import needs


class LeadExportController(Controller):
    path = "/v1/leads/export"
    tags = ("Leads",)
    opt = needs("leads:read")

    @get(
        "/",
        operation_id="exportLeads",
        summary="Export as CSV",
        media_type="text/csv",
        responses={
            200: ResponseSpec(
                str,
                description="A file",
                media_type="text/csv",
                examples=[Example(value=",".join(CSV_COLUMNS))],
            ),
        },
    )
    async def export(
        self,
        request: Request[Caller, Any, Any],
        leads: NamedDependency[Leads],
        business_profile_id: OfBusiness = None,
        tier: Tiers = None,
        score_min: ScoreMin = None,
        score_max: ScoreMax = None,
        niche: Niche = None,
        q: Words = None,
        analysis_type: OfType = None,
        deleted: FromQuery[bool] = False,  # noqa: FBT002  a query has names
    ) -> Stream:
        """All leads as one file, by username, with the same filters. Texts that a spreadsheet would run as a
        formula begin with an apostrophe.
        """
        only = lead_filter(
            business_profile_id=business_profile_id,
            tier=tier,
            score_min=score_min,
            score_max=score_max,
            niche=niche,
            q=q,
            analysis_type=analysis_type,
            deleted=deleted,
        )
        chunks = leads.export(request.user, only)
        # The first chunk is read before the answer starts, so that a refusal is still a problem.
        first = await anext(chunks)
        return Stream(
            csv_text(_chain(first, chunks)),
            media_type="text/csv",
            headers={"Content-Disposition": 'attachment; filename="leads.csv"'},
        )


async def _chain(first: list[Lead], rest: AsyncIterator[list[Lead]]) -> AsyncIterator[list[Lead]]:
    yield first
    async for chunk in rest:
        yield chunk
