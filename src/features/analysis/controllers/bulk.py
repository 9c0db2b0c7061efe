"""Routes that start bulk analyses and list their items."""

from typing import Any
from uuid import UUID

from litestar import Controller, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromPath, FromQuery

from features.analysis.application.start_bulk import StartBulk
from features.analysis.controllers.bulk_schemas import (
    BULK_EXAMPLE,
    BULK_QUOTE_EXAMPLE,
    BULK_STARTED_EXAMPLE,
    BulkQuoteResponse,
    BulkResponse,
    BulkStartedResponse,
    bulk_out,
    bulk_quote_out,
    bulk_started_out,
)
from features.analysis.controllers.request_schemas import BulkBody
from features.analysis.controllers.start_schemas import POLL_AFTER_S
from shared.caller import Caller
from shared.http.parameters import Limit, PositionCursor
from shared.http.problems import problem_responses
from shared.http.response_headers import RETRY_AFTER, RUN_LOCATION
from shared.http.route_policy import counts_as, needs
from shared.ids import RunId
from shared.middleware.idempotency import effect_id

Asked = Request[Caller, Any, Any]
Starts = NamedDependency[StartBulk]


class BulkController(Controller):
    path = "/v1/analyses/bulk"
    tags = ("Analyses",)

    @post(
        "/",
        operation_id="startBulkAnalysis",
        summary="Analyse many profiles",
        status_code=202,
        opt={**needs("runs:write"), **counts_as("bulk")},
        response_headers=(RUN_LOCATION, RETRY_AFTER),
        responses={
            202: ResponseSpec(
                BulkStartedResponse,
                description="The run, and which rows it does not include",
                examples=[Example(value=BULK_STARTED_EXAMPLE)],
            ),
            200: ResponseSpec(
                BulkQuoteResponse,
                description="With `dry_run=true`: what it would include and cost",
                examples=[Example(value=BULK_QUOTE_EXAMPLE)],
            ),
            **problem_responses(402),
        },
    )
    async def start(
        self,
        request: Asked,
        data: BulkBody,
        bulk_starts: Starts,
        dry_run: FromQuery[bool] = False,  # noqa: FBT002  a query has names
    ) -> Response[BulkStartedResponse | BulkQuoteResponse]:
        """Analyse many profiles on behalf of a business, as many as your plan allows at once. Rows that are
        no usernames, or the same as an earlier row, are left out, and `rejected` says why.

        Each profile is paid for when its turn comes; without credits for the first one the answer is 402
        (`insufficient_credits`). When credits run out later the run pauses, and continues by itself after a
        top-up. After 7 days it ends as failed with the outcome `expired`: what was delivered stays charged,
        the other profiles cost nothing. With `dry_run=true` nothing is started.
        """
        if dry_run:
            report = await bulk_starts.report(request.user, data.wish)
            return Response(bulk_quote_out(report), status_code=200)
        run_id = RunId(effect_id(request.scope))
        out = bulk_started_out(*await bulk_starts.start(request.user, run_id, data.wish))
        headers = {"Location": out.poll_url, "Retry-After": POLL_AFTER_S}
        return Response(out, status_code=202, headers=headers)

    @get(
        "/{run_id:uuid}",
        operation_id="getBulkAnalysis",
        summary="A bulk analysis",
        opt=needs("runs:read"),
        responses={
            200: ResponseSpec(
                BulkResponse, description="A page of its profiles", examples=[Example(value=BULK_EXAMPLE)]
            )
        },
    )
    async def read(
        self,
        request: Asked,
        run_id: FromPath[UUID],
        bulk_starts: Starts,
        cursor: PositionCursor = None,
        limit: Limit = 50,
    ) -> BulkResponse:
        """How each profile of a bulk analysis is, in the order in which they were sent. `counts` and
        `rejected` are about all of them, on every page. Follow `next_cursor` until it is null.
        """
        page, next_cursor = await bulk_starts.page(request.user, RunId(run_id), cursor=cursor, limit=limit)
        return bulk_out(page, next_cursor)
