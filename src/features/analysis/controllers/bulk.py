"""Routes that start bulk analyses and list their items."""

from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody

from features.analysis.application.start_bulk import StartBulk
from features.analysis.controllers.bulk_schemas import (
    BulkQuoteResponse,
    BulkResponse,
    BulkStartedResponse,
    bulk_quote_response,
    bulk_response,
    bulk_started_response,
)
from features.analysis.controllers.start_schemas import POLL_AFTER_S, StartBulkRequest
from shared.http.parameters import AuthenticatedRequest, Limit, PositionCursor
from shared.http.responses import RETRY_AFTER, RUN_LOCATION, ok, problems
from shared.http.route_policy import counts_as, needs
from shared.ids import RunId
from shared.middleware.idempotency import effect_id


class BulkController(Controller):
    path = "/v1/analyses/bulk"
    tags = ("Analyses",)

    @post(
        "/",
        status_code=202,
        opt={**needs("runs:write"), **counts_as("bulk")},
        response_headers=(RUN_LOCATION, RETRY_AFTER),
        responses={
            202: ok(BulkStartedResponse, "The queued run and the rejected rows"),
            200: ok(BulkQuoteResponse, "With `dry_run=true`: the accepted rows and their price"),
            **problems(402),
        },
    )
    async def start_bulk_analysis(
        self,
        request: AuthenticatedRequest,
        data: JSONBody[StartBulkRequest],
        bulk_starts: NamedDependency[StartBulk],
        dry_run: FromQuery[bool] = False,  # noqa: FBT002  a query has names
    ) -> Response[BulkStartedResponse | BulkQuoteResponse]:
        """Analyse many profiles for a business, at most as many as the plan allows at once.

        Rows that are not usernames, and rows equal to an earlier row, are left out; `rejected` contains the
        reasons.

        The price of each profile is held when its analysis starts; without credits for the first one the
        response is 402 (`insufficient_credits`). When credits run out later, the run pauses, and continues
        after a top-up. After 7 days it ends as failed with the outcome `expired`: completed analyses stay
        charged, the other profiles cost nothing. With `dry_run=true` nothing is started.
        """
        if dry_run:
            report = await bulk_starts.report(request.user, data.rows)
            return Response(bulk_quote_response(report), status_code=200)
        run_id = RunId(effect_id(request.scope))
        started = bulk_started_response(*await bulk_starts.start(request.user, run_id, data.rows))
        return Response(started, headers={"Location": started.poll_url, "Retry-After": POLL_AFTER_S})

    @get("/{run_id:uuid}", opt=needs("runs:read"))
    async def get_bulk_analysis(
        self,
        request: AuthenticatedRequest,
        run_id: FromPath[UUID],
        bulk_starts: NamedDependency[StartBulk],
        cursor: PositionCursor = None,
        limit: Limit = 50,
    ) -> BulkResponse:
        """Get a bulk analysis with one page of its profiles, in the order in which they were sent.

        `counts` and `rejected` are about all profiles, on every page.
        """
        page, next_cursor = await bulk_starts.page(request.user, RunId(run_id), cursor=cursor, limit=limit)
        return bulk_response(page, next_cursor)
