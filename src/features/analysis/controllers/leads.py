from typing import Any
from uuid import UUID

from litestar import Controller, Request, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromPath, FromQuery

from features.analysis.application.leads import Leads
from features.analysis.controllers.analysis_schemas import AnalysesResponse, entry_out
from features.analysis.controllers.examples import COMPARISON_EXAMPLE, ENTRY_EXAMPLE, LEAD_EXAMPLE
from features.analysis.controllers.lead_answers import (
    ExistingLeadResponse,
    LeadResponse,
    LeadsResponse,
    known_lead_out,
    lead_out,
)
from features.analysis.controllers.lead_queries import FILTERED, Only, SortedCursor
from features.analysis.domain.leads import LeadId, Sort
from shared.caller import Caller
from shared.http.etag import REVALIDATED, IfNoneMatch, entity_tag, is_known
from shared.http.parameters import Cursor, Limit
from shared.http.problems import problem_responses
from shared.http.response_headers import ENTITY_TAG
from shared.http.route_policy import needs

WRITE = needs("leads:write")
KNOWN_LEAD_EXAMPLE = {
    **LEAD_EXAMPLE,
    "latest_analysis": ENTRY_EXAMPLE,
    "comparison": COMPARISON_EXAMPLE,
}

Kept = NamedDependency[Leads]
Asked = Request[Caller, Any, Any]


class LeadsController(Controller):
    path = "/v1/leads"
    tags = ("Leads",)
    opt = needs("leads:read")

    @get(
        "/",
        dependencies=FILTERED,
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
    async def page(
        self,
        request: Asked,
        leads: Kept,
        only: Only,
        sort: FromQuery[Sort] = "-last_analysed_at",
        cursor: SortedCursor = None,
        limit: Limit = 50,
    ) -> LeadsResponse:
        """Whom the account has had analysed, each as the last analysis left them. Filters narrow each other
        down. A minus in `sort` puts the greatest first.

        Follow `next_cursor` until it is null, with the same `sort`: a cursor belongs to its sort. What is
        added or deleted meanwhile moves nothing else. With `deleted=true`, those that were deleted and can
        still be restored, and no others.
        """
        page = await leads.page(request.user, only, sort=sort, cursor=cursor, limit=limit)
        return LeadsResponse(items=[lead_out(lead) for lead in page.items], next_cursor=page.next_cursor)

    @get(
        "/{lead_id:uuid}",
        operation_id="getLead",
        summary="Get",
        response_headers=(ENTITY_TAG,),
        responses={
            200: ResponseSpec(
                ExistingLeadResponse,
                description="The lead; `ETag` is its version",
                examples=[Example(value=KNOWN_LEAD_EXAMPLE)],
            ),
            304: ResponseSpec(None, description="What you have still holds"),
        },
    )
    async def read(
        self, request: Asked, lead_id: FromPath[UUID], leads: Kept, if_none_match: IfNoneMatch = None
    ) -> Response[ExistingLeadResponse | None]:
        """One lead, the last analysis in short, and what has changed since the one before; `comparison` is
        null when there was none. Send the `ETag` in `If-None-Match` to learn only whether it has changed.
        """
        known = await leads.get(request.user, LeadId(lead_id))
        headers = {**REVALIDATED, "ETag": entity_tag(known.lead.version)}
        if is_known(if_none_match, known.lead.version):
            return Response(None, status_code=304, headers=headers)
        return Response(known_lead_out(known), headers=headers)

    @get(
        "/{lead_id:uuid}/analyses",
        operation_id="listLeadAnalyses",
        summary="History",
        responses={
            200: ResponseSpec(
                AnalysesResponse,
                description="A page",
                examples=[Example(value={"items": [ENTRY_EXAMPLE], "next_cursor": None})],
            ),
        },
    )
    async def history(
        self,
        request: Asked,
        lead_id: FromPath[UUID],
        leads: Kept,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> AnalysesResponse:
        """The lead's analyses, newest first, as far back as the account's plan goes."""
        page = await leads.history(request.user, LeadId(lead_id), cursor=cursor, limit=limit)
        return AnalysesResponse(
            items=[entry_out(entry) for entry in page.items], next_cursor=page.next_cursor
        )

    @delete(
        "/{lead_id:uuid}",
        operation_id="deleteLead",
        summary="Delete",
        opt=WRITE,
        responses={204: ResponseSpec(None, description="Deleted")},
    )
    async def remove(self, request: Asked, lead_id: FromPath[UUID], leads: Kept) -> None:
        """Delete a lead and its analyses. For 30 days it can be restored; then it is gone for good. Who is
        analysed again meanwhile is a new lead.
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
                LeadResponse,
                description="The lead as it is now; `ETag` is its new version",
                examples=[Example(value=LEAD_EXAMPLE)],
            ),
            **problem_responses(409),
        },
    )
    async def restore(self, request: Asked, lead_id: FromPath[UUID], leads: Kept) -> Response[LeadResponse]:
        """Bring back a lead that was deleted within the last 30 days, with its analyses. One that is not
        deleted stays as it is. If the same person was analysed again for the same business, the answer is
        409 `lead_taken`.
        """
        lead = await leads.restore(request.user, LeadId(lead_id))
        return Response(lead_out(lead), headers={"ETag": entity_tag(lead.version)})
