from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from litestar import Controller, Request, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromPath, FromQuery
from litestar.response import Stream

from features.leads.application.leads import Leads
from features.leads.controllers.examples import LEAD_ANALYSIS_EXAMPLE, LEAD_DETAILS_EXAMPLE, LEAD_EXAMPLE
from features.leads.controllers.filters import FILTERS, Filters, SortedCursor
from features.leads.controllers.schemas import LeadAnalysesResponse, LeadsResponse, csv_text
from features.leads.domain.leads import CSV_COLUMNS, Lead, LeadDetails, Sort
from shared.caller import Caller
from shared.http.etag import REVALIDATED, IfNoneMatch, entity_tag, is_known
from shared.http.pagination_parameters import Cursor, Limit
from shared.http.problems import problem_responses
from shared.http.response_headers import ENTITY_TAG
from shared.http.route_policy import needs
from shared.ids import LeadId

WRITE = needs("leads:write")

LeadsUseCase = NamedDependency[Leads]
AuthenticatedRequest = Request[Caller, Any, Any]


class LeadsController(Controller):
    path = "/v1/leads"
    tags = ("Leads",)
    opt = needs("leads:read")

    @get(
        "/",
        dependencies=FILTERS,
        operation_id="listLeads",
        summary="List",
        responses={
            200: ResponseSpec(
                LeadsResponse,
                description="A page",
                examples=[Example(value={"items": [LEAD_EXAMPLE], "next_cursor": None})],
            ),
        },
    )
    async def list_leads(
        self,
        request: AuthenticatedRequest,
        leads: LeadsUseCase,
        filters: Filters,
        sort: FromQuery[Sort] = "-last_analysed_at",
        cursor: SortedCursor = None,
        limit: Limit = 50,
    ) -> LeadsResponse:
        """Analysed profiles, each with the state after its latest analysis. Filters are combined with AND. A
        minus in `sort` means descending.

        Follow `next_cursor` until it is null, with the same `sort`: a cursor is valid for one sort only.
        Leads that are added or deleted between two pages do not shift the others. `deleted=true` lists only
        deleted leads that can be restored.
        """
        page = await leads.page(request.user, filters, sort=sort, cursor=cursor, limit=limit)
        return LeadsResponse(items=page.items, next_cursor=page.next_cursor)

    @get(
        "/export",
        dependencies=FILTERS,
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
    async def export_leads(
        self, request: AuthenticatedRequest, leads: LeadsUseCase, filters: Filters
    ) -> Stream:
        """All leads in one file, ordered by username, with the same filters as the list. A text that a
        spreadsheet would run as a formula is prefixed with an apostrophe.
        """
        chunks = leads.export(request.user, filters)
        # The first chunk is read before the response starts, so that an error is still a problem response.
        first = await anext(chunks)
        return Stream(
            csv_text(_chain(first, chunks)),
            media_type="text/csv",
            headers={"Content-Disposition": 'attachment; filename="leads.csv"'},
        )

    @get(
        "/{lead_id:uuid}",
        operation_id="getLead",
        summary="Get",
        response_headers=(ENTITY_TAG,),
        responses={
            200: ResponseSpec(
                LeadDetails,
                description="The lead; `ETag` is its version",
                examples=[Example(value=LEAD_DETAILS_EXAMPLE)],
            ),
            304: ResponseSpec(None, description="The version in `If-None-Match` is current"),
        },
    )
    async def get_lead(
        self,
        request: AuthenticatedRequest,
        lead_id: FromPath[UUID],
        leads: LeadsUseCase,
        if_none_match: IfNoneMatch = None,
    ) -> Response[LeadDetails | None]:
        """One lead with a summary of its latest analysis and a comparison with the previous one; `comparison`
        is null when there is no previous analysis. Send the `ETag` in `If-None-Match` to get 304 when the
        lead has not changed.
        """
        lead = await leads.get(request.user, LeadId(lead_id))
        headers = {**REVALIDATED, "ETag": entity_tag(lead.version)}
        if is_known(if_none_match, lead.version):
            return Response(None, status_code=304, headers=headers)
        return Response(lead, headers=headers)

    @get(
        "/{lead_id:uuid}/analyses",
        operation_id="listLeadAnalyses",
        summary="History",
        responses={
            200: ResponseSpec(
                LeadAnalysesResponse,
                description="A page",
                examples=[Example(value={"items": [LEAD_ANALYSIS_EXAMPLE], "next_cursor": None})],
            ),
        },
    )
    async def list_lead_analyses(
        self,
        request: AuthenticatedRequest,
        lead_id: FromPath[UUID],
        leads: LeadsUseCase,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> LeadAnalysesResponse:
        """The lead's analyses, newest first, as far back as the account's plan allows."""
        page = await leads.history(request.user, LeadId(lead_id), cursor=cursor, limit=limit)
        return LeadAnalysesResponse(items=page.items, next_cursor=page.next_cursor)

    @delete(
        "/{lead_id:uuid}",
        operation_id="deleteLead",
        summary="Delete",
        opt=WRITE,
        responses={204: ResponseSpec(None, description="Deleted")},
    )
    async def delete_lead(
        self, request: AuthenticatedRequest, lead_id: FromPath[UUID], leads: LeadsUseCase
    ) -> None:
        """Delete a lead and its analyses. The lead can be restored for 30 days; then it is purged. A new
        analysis of the same profile creates a new lead.
        """
        await leads.delete(request.user, LeadId(lead_id))

    @post(
        "/{lead_id:uuid}/restore",
        operation_id="restoreLead",
        summary="Restore",
        status_code=200,
        opt=WRITE,
        response_headers=(ENTITY_TAG,),
        responses={
            200: ResponseSpec(
                Lead,
                description="The restored lead; `ETag` is its new version",
                examples=[Example(value=LEAD_EXAMPLE)],
            ),
            **problem_responses(409),
        },
    )
    async def restore_lead(
        self, request: AuthenticatedRequest, lead_id: FromPath[UUID], leads: LeadsUseCase
    ) -> Response[Lead]:
        """Restore a lead that was deleted within the last 30 days, with its analyses. A lead that is not
        deleted stays unchanged. If the same profile was analysed again for the same business, the problem is
        409 `lead_already_exists`.
        """
        lead = await leads.restore(request.user, LeadId(lead_id))
        return Response(lead, headers={"ETag": entity_tag(lead.version)})


async def _chain(first: list[Lead], rest: AsyncIterator[list[Lead]]) -> AsyncIterator[list[Lead]]:
    yield first
    async for chunk in rest:
        yield chunk
