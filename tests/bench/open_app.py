"""The balance route without authentication, rate limits and request records: same boundary, same database.

Usage: open_app.py PORT PRINCIPALS
"""

import asyncio
import itertools
import os
import signal
import sys
from datetime import timedelta

import uvloop
from empty_app import server_of
from litestar import Litestar
from litestar.middleware import DefineMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from core.api.health import HealthController
from core.app import provide
from core.wiring.application import Application, build
from core.wiring.bootstrap import local_issuer, read_runtime
from features.credits.controllers.credits import CreditsController
from shared.caller import Caller
from shared.http.strict_body import StrictRequest
from shared.middleware.http_boundary import HttpBoundary
from shared.middleware.rate_limits import FailureRateLimit
from shared.middleware.request_body import Limits


class NoDoor:
    """Assigns callers in turn, without authentication."""

    def __init__(self, app: ASGIApp, callers: list[Caller]) -> None:
        self._app = app
        self._callers = itertools.cycle(callers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["user"] = next(self._callers)
        await self._app(scope, receive, send)


async def serve(port: int, principals: int) -> None:
    place = read_runtime(os.environ)
    async with build(place) as application:
        issuer = local_issuer(place.settings)
        tokens = [
            issuer.token(f"bench-{number}@example.com", lifetime=timedelta(hours=1))
            for number in range(principals)
        ]
        authenticate = application.dependencies["authenticator"].authenticate
        callers = [(await authenticate(f"Bearer {token}".encode(), None)).caller for token in tokens]
        server = server_of(open_app(application, callers), port)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)
        await server.serve()


def open_app(application: Application, callers: list[Caller]) -> ASGIApp:
    litestar = Litestar(
        [HealthController, CreditsController],
        dependencies={
            "health": provide(application.health),
            "authenticator": provide(application.dependencies["authenticator"]),
            "readiness_limits": provide(FailureRateLimit(application.poll_limits, 0)),
            "balances": provide(application.dependencies["balances"]),
            "statements": provide(application.dependencies["statements"]),
        },
        middleware=[DefineMiddleware(NoDoor, callers=callers)],
        request_class=StrictRequest,
        openapi_config=None,
        logging_config=None,
    )
    return HttpBoundary(litestar, Limits(), https_only=False, record=lambda _: None)


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
