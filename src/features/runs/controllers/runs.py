from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromPath, FromQuery, HeaderParameter, QueryParameter
from litestar.response import Stream

from features.runs.application.event_stream import RunEventStreams
from features.runs.application.live_runs import RETRY_AFTER_S, RunView
from features.runs.application.ports import RunFilter
from features.runs.application.retries import Cancellations, Retries
from features.runs.application.run_queries import RunQueries
from features.runs.controllers.events import frames, seen_version
from features.runs.controllers.schemas import (
    ENDED_EXAMPLE,
    EVENT_EXAMPLE,
    PATH,
    RUN_EXAMPLE,
    STARTED_EXAMPLE,
    RunsResponse,
    RunStartedResponse,
    is_known,
    poll_url,
)
from features.runs.domain.errors import WaitInvalid
from features.runs.domain.run import Status
from features.runs.domain.view import RunResponse
from shared.caller import Caller
from shared.http.pagination_parameters import Cursor, Limit
from shared.http.problems import problem_responses
from shared.http.response_headers import ENTITY_TAG, LOCATION
from shared.http.route_policy import counts_as, needs
from shared.ids import RunId
from shared.middleware.idempotency import effect_id
from shared.timestamps import as_utc

WAIT_S_MAX = 30
KIND_PATTERN = "^[a-z][a-z0-9]*(_[a-z0-9]+)+$"
WRITE = needs("runs:write")
PROGRESS = counts_as("progress")
JSON = "application/json"
EVENT_STREAM = "text/event-stream"

At = Annotated[
    datetime | None, QueryParameter(description="An instant with its offset, as 2026-11-01T00:00:00Z.")
]
Kind = Annotated[
    str | None,
    QueryParameter(pattern=KIND_PATTERN, max_length=40, description="For example `deep_analysis`."),
]
Wait = Annotated[
    int | None,
    QueryParameter(
        description="Seconds to wait for something new before answering.",
        schema_extra={"minimum": 1, "maximum": WAIT_S_MAX},  # a value outside the range is 422, not 400
    ),
]
IfNoneMatch = Annotated[
    str | None,
    HeaderParameter(name="If-None-Match", description="The `ETag` you have: answer 304 if it still holds."),
]
LastEventId = Annotated[
    str | None,
    HeaderParameter(name="Last-Event-ID", description="The `id` of the last event you have seen."),
]
Asked = Request[Caller, Any, Any]


def _shows(description: str, example: dict[str, Any]) -> ResponseSpec:
    return ResponseSpec(RunResponse, description=description, examples=[Example(value=example)])


def _headers(view: RunView) -> dict[str, str]:
    headers = {"Cache-Control": "private, no-cache", "ETag": view.tag}
    return headers if view.is_ended else {**headers, "Retry-After": str(RETRY_AFTER_S)}


class RunsController(Controller):
    path = PATH
    tags = ("Runs",)
    opt = needs("runs:read")

    @get(
        "/",
        operation_id="listRuns",
        summary="List",
        responses={
            200: ResponseSpec(
                RunsResponse,
                description="A page",
                examples=[Example(value={"items": [ENDED_EXAMPLE], "next_cursor": None})],
            )
        },
    )
    async def page(
        self,
        request: Asked,
        run_views: NamedDependency[RunQueries],
        cursor: Cursor = None,
        limit: Limit = 50,
        status: FromQuery[Status | None] = None,
        kind: Kind = None,
        parent_id: FromQuery[UUID | None] = None,
        since: At = None,
        until: At = None,
    ) -> RunsResponse:
        """The account's runs, newest first. Runs that are part of another are shown only with its id in
        `parent_id`. `since` is included, `until` is not. A run's place in the queue, and its `eta_s` while it
        waits there, are on its own page only.
        """
        only = RunFilter(
            status=status,
            kind=kind,
            parent_id=None if parent_id is None else RunId(parent_id),
            since=as_utc(since),
            until=as_utc(until),
        )
        page = await run_views.page(request.user, only, cursor=cursor, limit=limit)
        return RunsResponse(items=page.items, next_cursor=page.next_cursor)

    @get(
        "/{run_id:uuid}",
        operation_id="getRun",
        summary="Get",
        opt=PROGRESS,
        response_headers=(ENTITY_TAG,),
        responses={
            200: _shows("The run; `ETag` stands for all that is shown of it", RUN_EXAMPLE),
            304: ResponseSpec(None, description="What you have still holds"),
        },
    )
    async def read(
        self,
        request: Asked,
        run_id: FromPath[UUID],
        run_views: NamedDependency[RunQueries],
        if_none_match: IfNoneMatch = None,
        wait: Wait = None,
    ) -> Response[Any]:
        """One run. Poll it with its `ETag` in `If-None-Match`, as often as `Retry-After` says (two seconds;
        missing when the run has ended): an unchanged run costs neither of us anything.

        With `wait`, the answer comes when something is new, or when the time is over: new compared to your
        `ETag`, or to the run at the time of the request. An ended run is shown at once. `queue` is its place
        while it waits, `eta_s` an estimate from the times that the steps of others took. What a run with
        parts holds and charges includes its parts. `is_live` is false from an hour after the end on.
        """
        if wait is not None and not 1 <= wait <= WAIT_S_MAX:
            raise WaitInvalid(limit=WAIT_S_MAX)
        view = await run_views.get(request.user, RunId(run_id))
        if wait and (if_none_match is None or is_known(if_none_match, view.tag)):
            view = await run_views.wait(request.user, view, wait)
        if is_known(if_none_match, view.tag):
            return Response(None, status_code=304, headers=_headers(view))
        return Response(view.body, media_type=JSON, headers=_headers(view))

    @get(
        "/{run_id:uuid}/events",
        operation_id="streamRunEvents",
        summary="Stream",
        opt=PROGRESS,
        media_type=EVENT_STREAM,
        responses={
            200: ResponseSpec(
                str,
                description="Server-sent events, until the run has ended",
                media_type=EVENT_STREAM,
                examples=[Example(value=EVENT_EXAMPLE)],
            ),
        },
    )
    async def events(
        self,
        request: Asked,
        run_id: FromPath[UUID],
        run_views: NamedDependency[RunQueries],
        run_streams: NamedDependency[RunEventStreams],
        last_event_id: LastEventId = None,
    ) -> Stream:
        """The run as server-sent events: an event `run` with the run as its data whenever it changes, then
        `end`, and the stream closes. An event's `id` is the run's version. Connect again with
        `Last-Event-ID`: what you have seen is not sent again, and if the run has moved on, its state now is.
        A comment comes every 15 seconds while nothing happens. 20 streams may be open at once.

        The token goes into the `Authorization` header here too. A browser's `EventSource` cannot send
        headers: use `fetch`, or poll with `wait`.
        """
        caller = request.user
        run_streams.check_room(caller)
        view = await run_views.get(caller, RunId(run_id))
        views = run_streams.follow(caller, view, seen_version=seen_version(last_event_id))
        return Stream(
            frames(view, views),
            media_type=EVENT_STREAM,
            # A buffering proxy would hold the events back until the stream ends.
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )

    @post(
        "/{run_id:uuid}/cancel",
        operation_id="cancelRun",
        summary="Cancel",
        status_code=202,
        opt=WRITE,
        responses={
            202: _shows("Asked to stop; poll until it has ended", {**RUN_EXAMPLE, "should_cancel": True}),
            200: _shows("It has ended, now or before; nothing is left to stop", ENDED_EXAMPLE),
        },
    )
    async def cancel(
        self, request: Asked, run_id: FromPath[UUID], cancellations: NamedDependency[Cancellations]
    ) -> Response[Any]:
        """Stop a run and the runs that are part of it. One that waits is cancelled at once and costs
        nothing; one at work stops within its current step. What is charged then is told by
        `GET /v1/refund-policy`. May be repeated: whichever end comes first is the end.
        """
        view = await cancellations.cancel(request.user, RunId(run_id))
        return Response(view.body, media_type=JSON, status_code=200 if view.is_ended else 202)

    @post(
        "/{run_id:uuid}/retry",
        operation_id="retryRun",
        summary="Try again",
        status_code=202,
        opt=WRITE,
        response_headers=(LOCATION,),
        responses={
            202: ResponseSpec(
                RunStartedResponse,
                description="A new run; `Location` is its address",
                examples=[Example(value=STARTED_EXAMPLE)],
            ),
            **problem_responses(402),
        },
    )
    async def retry(
        self, request: Asked, run_id: FromPath[UUID], retries: NamedDependency[Retries]
    ) -> Response[RunStartedResponse]:
        """Try a run again that failed or was cancelled, as a new run with the old one in `retry_of`. Steps
        that went well are not done again. If the same work is in progress already, that run is the answer.

        A run that failed was charged nothing: the new one costs its price once, when it delivers, and nobody
        pays twice. One that you cancelled was charged by the refund policy, and the new one costs its price.

        The rules of a first start apply: a test key is rejected (403 `test_key_never_spends`), a deleted
        business is 404, and a light analysis counts against the plan's hourly limit. A bulk run is retried
        with all of its rows if none of them had started.
        """
        run = await retries.retry(request.user, RunId(run_id), RunId(effect_id(request.scope)))
        url = poll_url(run.id)
        return Response(
            RunStartedResponse(run_id=run.id, status=run.status, poll_url=url),
            status_code=202,
            headers={"Location": url},
        )
