"""Middleware that answers polls of an unchanged run with 304, without a query or a request object.

These responses are cheap, so each process counts them in its own rate limit; a shared count would need the
query that this middleware saves. All other requests continue to the application, including rejected ones: the
application counts them in the shared limit and writes the problem response.
"""

from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from features.runs.application.live_runs import LiveRun, LiveRuns
from shared.caller import Caller
from shared.errors import DomainError
from shared.middleware.rate_limits import RateLimits
from shared.middleware.request_context import context_of
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
        self, app: ASGIApp, live: LiveRuns, authenticator: Authenticator, rate_limits: RateLimits
    ) -> None:
        self._app = app
        self._live = live
        self._authenticator = authenticator
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
        """True when the caller has the current state, may still read it, and is within the rate limit."""
        authorization, account, tag = _presented(scope)
        if tag != live.tag:
            return False
        try:
            auth = await self._authenticator.authenticate(authorization, account)
            if not self._may_know(auth.caller, live, scope["path"][START:]):
                return False
            context = context_of(scope)
            await self._rate_limits.count(context, auth.rate_limit_key, auth.plan, ROUTE_CLASS)
        except DomainError:
            return False
        context.auth = auth
        scope["path_template"] = TEMPLATE
        return True

    def _may_know(self, caller: Caller, live: LiveRun, run_id: str) -> bool:
        return (
            (caller.id, caller.chosen_account) in live.callers
            and (caller.scopes is None or PERMISSION in caller.scopes)
            and self._live.now_s() < live.fresh_until_s
            and self._live.find(run_id) is live  # it may have changed while the caller was authenticated
        )


def _presented(scope: HTTPScope) -> tuple[bytes, bytes | None, bytes]:
    """Return authorization, account and tag. Without authorization or with a repeated header the tag is
    empty, so that the application handles the request.
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
