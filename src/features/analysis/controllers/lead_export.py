from collections.abc import AsyncIterator
from typing import Any

from litestar import Controller, Request, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.response import Stream

from features.analysis.application.leads import Leads
from features.analysis.controllers.lead_answers import csv_text
from features.analysis.controllers.lead_queries import FILTERED, Only
from features.analysis.domain.leads import CSV_COLUMNS, Lead
from shared.caller import Caller
from shared.http.route_policy import needs


class LeadExportController(Controller):
    path = "/v1/leads/export"
    tags = ("Leads",)
    opt = needs("leads:read")

    @get(
        "/",
        dependencies=FILTERED,
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
        only: Only,
    ) -> Stream:
        """All leads as one file, by username, with the same filters. Texts that a spreadsheet would run as a
        formula begin with an apostrophe.
        """
        chunks = leads.export(request.user, only)
        # The first chunk is read before the response starts, so that an error is still a problem response.
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
