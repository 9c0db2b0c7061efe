"""The poll that brings nothing new, answered in front of the framework: no query, no request object.

It costs next to nothing, so each process counts these for itself; a count that all share would be the query
that is saved. Everything else goes on to the application, also everything that is refused: there it is
counted by all, and gets its words.
"""

from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from features.runs.application.live_runs import LiveRun, LiveRuns
from shared.caller import Caller
from shared.errors import DomainError
from shared.middleware.rate_limits import RateLimits
from shared.middleware.request_context import passage_of
from shared.middleware.request_pipeline import Authenticator
from shared.permissions import Permission

PREFIX = "/v1/runs/"
START = len(PREFIX)
TEMPLATE = "/v1/runs/{run_id}"
ROUTE_CLASS = "progress"
PERMISSION: Permission = "runs:read"
NOT_MODIFIED = 304


class RunPollMiddleware:
    def __init__(
        self, app: ASGIApp, live: LiveRuns, doorkeeper: Authenticator, rate_limits: RateLimits
    ) -> None:
        self._app = app
        self._live = live
        self._doorkeeper = doorkeeper
        self._rate_limits = rate_limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"].startswith(PREFIX):
            live = self._live.find(scope["path"][START:])
            if live is not None and not scope["query_string"] and await self._is_known(live, scope):
                await send({"type": "http.response.start", "status": NOT_MODIFIED, "headers": live.headers})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
        await self._app(scope, receive, send)

    async def _is_known(self, live: LiveRun, scope: HTTPScope) -> bool:
        """Whether the caller has this very state, may still see it, and has not asked too often."""
        authorization, account, tag = _presented(scope)
        if tag != live.tag:
            return False
        try:
            visit = await self._doorkeeper.visit(authorization, account)
            if not self._may_know(visit.caller, live, scope["path"][START:]):
                return False
            passage = passage_of(scope)
            await self._rate_limits.count(passage, visit.counted_as, visit.plan, ROUTE_CLASS)
        except DomainError:
            return False
        passage.visit = visit
        scope["path_template"] = TEMPLATE
        return True

    def _may_know(self, caller: Caller, live: LiveRun, run_id: str) -> bool:
        return (
            (caller.id, caller.chosen_account) in live.callers
            and (caller.scopes is None or PERMISSION in caller.scopes)
            and self._live.now_s() < live.fresh_until_s
            and self._live.find(run_id) is live  # still: it was not looked at in the same breath
        )


def _presented(scope: HTTPScope) -> tuple[bytes, bytes | None, bytes]:
    """The three headers that matter here. One that is sent twice is for the application to judge: then no
    tag is known.
    """
    authorization = account = tag = None
    for name, value in scope["headers"]:
        if name == b"authorization":
            authorization = value if authorization is None else b""
        elif name == b"oslira-account":
            account = value if account is None else b""
        elif name == b"if-none-match":
            tag = value if tag is None else b""
    if not authorization or account == b"":
        tag = b""
    return authorization or b"", account, tag or b""
