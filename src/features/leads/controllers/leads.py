"""Routes for leads."""

from typing import Any
from uuid import UUID

from litestar import Controller, Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Stream

from features.leads.application.leads import Leads
from features.leads.controllers.filters import FILTERS, Filters, SortedCursor
from features.leads.domain.leads import CSV_COLUMNS, Lead, LeadAnalysis, LeadDetails, Sort
from shared.http import csv_export
from shared.http.etag import IfNoneMatch, entity_tag, versioned_response
from shared.http.parameters import AuthenticatedRequest, Cursor, Limit
from shared.http.responses import ENTITY_TAG, NOT_MODIFIED, ok, problems
from shared.http.route_policy import needs
from shared.ids import LeadId
from shared.pagination import Page

WRITE = needs("leads:write")


class LeadsController(Controller):
    path = "/v1/leads"
    tags = ("Leads",)
    opt = needs("leads:read")

    @get("/", dependencies=FILTERS)
    async def list_leads(
        self,
        request: AuthenticatedRequest,
        leads: NamedDependency[Leads],
        filters: Filters,
        sort: FromQuery[Sort] = "-last_analysed_at",
        cursor: SortedCursor = None,
        limit: Limit = 50,
    ) -> Page[Lead]:
        """List analysed profiles, each in the state after its latest analysis.

        Filters are combined with AND. A minus in `sort` means descending.

        Follow `next_cursor` until it is null, with the same `sort`: a cursor is valid for one sort only.
        Leads that are added or deleted between two pages do not shift the others. `deleted=true` lists only
        deleted leads that can be restored.
        """
        return await leads.page(request.user, filters, sort=sort, cursor=cursor, limit=limit)

    @get(
        "/export",
        dependencies=FILTERS,
        media_type=csv_export.MEDIA_TYPE,
        responses={200: ok(str, "A CSV file", csv_export.MEDIA_TYPE)},
    )
    async def export_leads(
        self, request: AuthenticatedRequest, leads: NamedDependency[Leads], filters: Filters
    ) -> Stream:
        """Export all leads as CSV, ordered by username, with the same filters as the list.

        A text that a spreadsheet would run as a formula is prefixed with an apostrophe.
        """
        chunks = leads.export(request.user, filters)
        return await csv_export.csv_response("leads.csv", Lead, CSV_COLUMNS, chunks)

    @get(
        "/{lead_id:uuid}",
        response_headers=(ENTITY_TAG,),
        responses={200: ok(LeadDetails, "The lead; `ETag` is its version"), **NOT_MODIFIED},
    )
    async def get_lead(
        self,
        request: AuthenticatedRequest,
        lead_id: FromPath[UUID],
        leads: NamedDependency[Leads],
        if_none_match: IfNoneMatch = None,
    ) -> Response[Any]:
        """Get a lead with a summary of its latest analysis and a comparison with the previous one.

        `comparison` is null when there is no previous analysis. Send the `ETag` in `If-None-Match` to get
        304 when the lead has not changed.
        """
        lead = await leads.get(request.user, LeadId(lead_id))
        return versioned_response(lead, lead.version, if_none_match)

    @get("/{lead_id:uuid}/analyses")
    async def list_lead_analyses(
        self,
        request: AuthenticatedRequest,
        lead_id: FromPath[UUID],
        leads: NamedDependency[Leads],
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[LeadAnalysis]:
        """List the analyses of a lead, newest first, as far back as the account's plan allows."""
        return await leads.history(request.user, LeadId(lead_id), cursor=cursor, limit=limit)

    @delete("/{lead_id:uuid}", opt=WRITE)
    async def delete_lead(
        self, request: AuthenticatedRequest, lead_id: FromPath[UUID], leads: NamedDependency[Leads]
    ) -> None:
        """Delete a lead and its analyses.

        The lead can be restored for 30 days; then it is purged. A new analysis of the same profile creates a
        new lead.
        """
        await leads.delete(request.user, LeadId(lead_id))

    @post(
        "/{lead_id:uuid}/restore",
        status_code=200,
        opt=WRITE,
        response_headers=(ENTITY_TAG,),
        responses=problems(409),
    )
    async def restore_lead(
        self, request: AuthenticatedRequest, lead_id: FromPath[UUID], leads: NamedDependency[Leads]
    ) -> Response[Lead]:
        """Restore a lead that was deleted within the last 30 days, with its analyses.

        A lead that is not deleted stays unchanged. If the same profile was analysed again for the same
        business, the problem is 409 `lead_already_exists`.
        """
        lead = await leads.restore(request.user, LeadId(lead_id))
        return Response(lead, headers={"ETag": entity_tag(lead.version)})
