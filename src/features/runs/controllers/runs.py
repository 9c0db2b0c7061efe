"""Routes for runs and the refund policy."""

from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, HeaderParameter, QueryParameter
from litestar.response import Stream

from features.runs.application.event_stream import RunEventStreams
from features.runs.application.live_runs import RETRY_AFTER_S, RunView
from features.runs.application.ports import RunFilter
from features.runs.application.retries import Cancellations, Retries
from features.runs.application.run_queries import RunQueries
from features.runs.controllers.events import frames, seen_version
from features.runs.controllers.schemas import (
    PATH,
    RefundPoliciesResponse,
    RunStartedResponse,
    is_current,
    poll_url,
)
from features.runs.domain.errors import WaitInvalid
from features.runs.domain.refunds import REFUND_POLICIES, REFUND_POLICY_VERSION
from features.runs.domain.run import Status
from features.runs.domain.view import RunResponse
from shared.http.etag import IfNoneMatch
from shared.http.parameters import AuthenticatedRequest, Cursor, Limit, Time
from shared.http.responses import ENTITY_TAG, LOCATION, NOT_MODIFIED, ok, problems
from shared.http.route_policy import PUBLIC, counts_as, needs
from shared.ids import RunId
from shared.middleware.idempotency import effect_id
from shared.pagination import Page
from shared.timestamps import as_utc

WAIT_S_MAX = 30
KIND_PATTERN = "^[a-z][a-z0-9]*(_[a-z0-9]+)+$"
WRITE = needs("runs:write")
PROGRESS = counts_as("progress")
JSON = "application/json"
EVENT_STREAM = "text/event-stream"
POLICIES = RefundPoliciesResponse(
    current_version=REFUND_POLICY_VERSION, policies=list(REFUND_POLICIES.values())
)

Kind = Annotated[
    str | None,
    QueryParameter(pattern=KIND_PATTERN, max_length=40, description="For example `deep_analysis`."),
]
Wait = Annotated[
    int | None,
    QueryParameter(
        description="Seconds to wait for a change before the response.",
        schema_extra={"minimum": 1, "maximum": WAIT_S_MAX},  # a value outside the range is 422, not 400
    ),
]
LastEventId = Annotated[
    str | None, HeaderParameter(name="Last-Event-ID", description="The `id` of the last received event.")
]


def _headers(view: RunView) -> dict[str, str]:
    headers = {"Cache-Control": "private, no-cache", "ETag": view.tag}
    return headers if view.is_ended else {**headers, "Retry-After": str(RETRY_AFTER_S)}


class RunsController(Controller):
    path = PATH
    tags = ("Runs",)
    opt = needs("runs:read")

    @get("/")
    async def list_runs(
        self,
        request: AuthenticatedRequest,
        run_queries: NamedDependency[RunQueries],
        cursor: Cursor = None,
        limit: Limit = 50,
        status: FromQuery[Status | None] = None,
        kind: Kind = None,
        parent_id: FromQuery[UUID | None] = None,
        since: Time = None,
        until: Time = None,
    ) -> Page[RunResponse]:
        """List the account's runs, newest first.

        The list contains the children of a run only with its id in `parent_id`. `since` is included, `until`
        is excluded. `queue`, and `eta_s` of a queued run, are only in the response for a single run.
        """
        run_filter = RunFilter(
            status=status,
            kind=kind,
            parent_id=None if parent_id is None else RunId(parent_id),
            since=as_utc(since),
            until=as_utc(until),
        )
        return await run_queries.page(request.user, run_filter, cursor=cursor, limit=limit)

    @get(
        "/{run_id:uuid}",
        opt=PROGRESS,
        response_headers=(ENTITY_TAG,),
        responses={200: ok(RunResponse, "The run; `ETag` identifies this state"), **NOT_MODIFIED},
    )
    async def get_run(
        self,
        request: AuthenticatedRequest,
        run_id: FromPath[UUID],
        run_queries: NamedDependency[RunQueries],
        if_none_match: IfNoneMatch = None,
        wait: Wait = None,
    ) -> Response[Any]:
        """Get a run.

        Poll it with its `ETag` in `If-None-Match`, at the interval in `Retry-After` (two seconds; absent when
        the run has ended). An unchanged run gives 304.

        With `wait`, the response is sent when the run differs from your `ETag`, or from its state at the time
        of the request, or when the time is over. An ended run is returned immediately. `queue` is the
        position of a queued run; `eta_s` is an estimate from the durations of other runs. The credits of a
        run include those of its children. `is_live` is false from one hour after the end.
        """
        if wait is not None and not 1 <= wait <= WAIT_S_MAX:
            raise WaitInvalid(limit=WAIT_S_MAX)
        view = await run_queries.get(request.user, RunId(run_id))
        if wait and (if_none_match is None or is_current(if_none_match, view.tag)):
            view = await run_queries.wait(request.user, view, wait)
        if is_current(if_none_match, view.tag):
            return Response(None, status_code=304, headers=_headers(view))
        return Response(view.body, media_type=JSON, headers=_headers(view))

    @get(
        "/{run_id:uuid}/events",
        opt=PROGRESS,
        media_type=EVENT_STREAM,
        responses={200: ok(str, "Server-sent events, until the run has ended", EVENT_STREAM)},
    )
    async def stream_run_events(
        self,
        request: AuthenticatedRequest,
        run_id: FromPath[UUID],
        run_queries: NamedDependency[RunQueries],
        run_streams: NamedDependency[RunEventStreams],
        last_event_id: LastEventId = None,
    ) -> Stream:
        """Stream the changes of a run as server-sent events.

        Each change is an event `run` with the run as data; its `id` is the run's version. The last event is
        `end`; then the stream closes. To reconnect, send `Last-Event-ID`: events that you have received are
        not repeated, and if the run has changed, its current state is sent. A comment is sent every 15
        seconds without changes. At most 20 streams can be open at once.

        The token is sent in the `Authorization` header, as for all requests. A browser's `EventSource`
        cannot send headers: use `fetch`, or poll with `wait`.
        """
        caller = request.user
        run_streams.check_room(caller)
        view = await run_queries.get(caller, RunId(run_id))
        views = run_streams.follow(caller, view, seen_version=seen_version(last_event_id))
        return Stream(
            frames(view, views),
            media_type=EVENT_STREAM,
            # A buffering proxy would hold the events back until the stream ends.
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )

    @post(
        "/{run_id:uuid}/cancel",
        status_code=202,
        opt=WRITE,
        responses={
            202: ok(RunResponse, "The run is being cancelled; poll until it has ended"),
            200: ok(RunResponse, "The run has ended, now or before"),
        },
    )
    async def cancel_run(
        self,
        request: AuthenticatedRequest,
        run_id: FromPath[UUID],
        cancellations: NamedDependency[Cancellations],
    ) -> Response[Any]:
        """Cancel a run and its children.

        A queued run is cancelled immediately and costs nothing; a running one stops within its current step.
        `GET /v1/refund-policy` states what is charged. This request can be repeated: the first end of a run
        is final.
        """
        view = await cancellations.cancel(request.user, RunId(run_id))
        return Response(view.body, media_type=JSON, status_code=200 if view.is_ended else 202)

    @post(
        "/{run_id:uuid}/retry",
        status_code=202,
        opt=WRITE,
        response_headers=(LOCATION,),
        responses=problems(402),
    )
    async def retry_run(
        self, request: AuthenticatedRequest, run_id: FromPath[UUID], retries: NamedDependency[Retries]
    ) -> Response[RunStartedResponse]:
        """Retry a failed or cancelled run as a new run, with the old one in `retry_of`.

        Completed steps are not repeated. If the same work is already in progress, the response contains that
        run.

        A failed run was charged nothing, so the new run costs its price once, when it completes. A cancelled
        run was charged by the refund policy, and the new run costs its full price.

        The rules of a first start apply: a test key is rejected (403 `test_key_never_spends`), a deleted
        business profile gives 404, and a light analysis counts against the plan's hourly limit. A bulk run
        is retried with all its rows if none of them had started.
        """
        run = await retries.retry(request.user, RunId(run_id), RunId(effect_id(request.scope)))
        url = poll_url(run.id)
        started = RunStartedResponse(run_id=run.id, status=run.status, poll_url=url)
        return Response(started, headers={"Location": url})


class RefundPolicyController(Controller):
    path = "/v1/refund-policy"
    tags = ("Runs",)
    opt = PUBLIC
    security = ({},)

    @get("/", sync_to_thread=False)
    def get_refund_policy(self) -> RefundPoliciesResponse:
        """Get all versions of the refund policy: the share of the held credits that a run is charged.

        The share depends on how the run ended and is rounded down; a rule with `credits_charged_min` charges
        at least that many credits. A run is settled by the version that was current when it started.
        """
        return POLICIES
