"""Routes for light analyses without an account. The token in the URL is a secret, so logs contain no URLs."""

from datetime import datetime
from typing import Annotated

import msgspec
from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter

from features.analysis.application.anonymous import AnonymousAnalyses
from features.analysis.controllers.start_schemas import (
    POLL_AFTER_S,
    AnonymousStartedResponse,
    StartAnonymousRequest,
)
from features.analysis.domain.anonymous import AnonymousResult
from shared.http.responses import RETRY_AFTER, problems, struct_from
from shared.http.route_policy import PUBLIC, counts_as

PATH = "/v1/analyses/anonymous"
UNFINISHED = frozenset({"queued", "processing", "paused"})
NOT_STORED = {"Cache-Control": "no-store"}

Token = Annotated[str, PathParameter(description="The token from the response that started the analysis.")]


class AnonymousResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    progress: int
    current_step: str | None
    outcome: str | None
    result: AnonymousResult | None
    expires_at: datetime


class AnonymousController(Controller):
    path = PATH
    tags = ("Analyses",)
    security = ({},)  # no token needed

    @post(
        "/",
        status_code=202,
        opt={**PUBLIC, **counts_as("anonymous")},
        response_headers=(RETRY_AFTER,),
        responses=problems(422, 503),
    )
    async def start_anonymous_analysis(
        self, data: JSONBody[StartAnonymousRequest], anonymous_analyses: NamedDependency[AnonymousAnalyses]
    ) -> Response[AnonymousStartedResponse]:
        """Start a free light analysis without an account, a few times per hour.

        Store the token of the response: it is required to read the result, for 24 hours.
        """
        started, token = await anonymous_analyses.start(data.username)
        response = struct_from(AnonymousStartedResponse, started, poll_url=f"{PATH}/{token}", token=token)
        # No Location header, because proxies log headers more often than bodies.
        return Response(response, headers={**NOT_STORED, "Retry-After": POLL_AFTER_S})

    @get(
        "/{token:str}",
        opt={**PUBLIC, **counts_as("progress")},
        response_headers=(RETRY_AFTER,),
        responses=problems(404, 503),
    )
    async def get_anonymous_analysis(
        self, token: Token, anonymous_analyses: NamedDependency[AnonymousAnalyses]
    ) -> Response[AnonymousResponse]:
        """Get the progress of an analysis without an account, and its result.

        `outcome` states how the analysis ended.
        """
        found = await anonymous_analyses.get(token)
        waiting = {"Retry-After": POLL_AFTER_S} if found.status in UNFINISHED else {}
        return Response(struct_from(AnonymousResponse, found), headers={**NOT_STORED, **waiting})
