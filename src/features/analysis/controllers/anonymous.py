"""Routes for light analyses without an account. The token in the URL is a secret, so logs contain no URLs."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec
from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import PathParameter

from features.analysis.application.anonymous import AnonymousAnalyses
from features.analysis.controllers.request_schemas import AnonymousBody
from features.analysis.controllers.start_schemas import POLL_AFTER_S, RUN_EXAMPLE
from features.analysis.domain.anonymous import AnonymousResult
from shared.http.problems import problem_responses
from shared.http.response_headers import RETRY_AFTER
from shared.http.route_policy import PUBLIC, counts_as

PATH = "/v1/analyses/anonymous"
UNFINISHED = frozenset({"queued", "processing", "paused"})
NOT_KEPT = {"Cache-Control": "no-store"}

Token = Annotated[str, PathParameter(description="As it was told when the analysis was started.")]
Analyses = NamedDependency[AnonymousAnalyses]


class AnonymousStartedResponse(msgspec.Struct, frozen=True, kw_only=True):
    run_id: UUID
    status: str
    poll_url: str
    token: str
    expires_at: datetime


class AnonymousResponse(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    progress: int
    current_step: str | None
    outcome: str | None
    result: AnonymousResult | None
    expires_at: datetime


TOKEN_EXAMPLE = "dGhpcyBpcyBhbiBleGFtcGxlIG9mIGEgdG9rZW4hISE"  # noqa: S105  opens nothing
ANONYMOUS_STARTED_EXAMPLE = {
    "run_id": RUN_EXAMPLE,
    "status": "queued",
    "poll_url": f"{PATH}/{TOKEN_EXAMPLE}",
    "token": TOKEN_EXAMPLE,
    "expires_at": "2026-03-02T12:00:00Z",
}
ANONYMOUS_EXAMPLE = {
    "status": "completed",
    "progress": 100,
    "current_step": "save",
    "outcome": "completed",
    "result": {
        "username": "natgeo",
        "full_name": "National Geographic",
        "score": 71,
        "tier": "warm",
        "niche": "nature photography",
        "summary": "A very large account that shows landscapes and wildlife every day.",
        "reasons": [{"effect": "for", "text": "Posts daily, and its audience answers."}],
        "facts": {
            "followers": 281_000_000,
            "following": 192,
            "posts_count": 31_000,
            "size": "enterprise",
            "engagement_rate": 0.41,
            "is_verified": True,
        },
        "is_simulated": False,
    },
    "expires_at": "2026-03-02T12:00:00Z",
}


class AnonymousController(Controller):
    path = PATH
    tags = ("Analyses",)
    security = ({},)  # no token needed

    @post(
        "/",
        operation_id="startAnonymousAnalysis",
        summary="Analyse without an account",
        status_code=202,
        opt={**PUBLIC, **counts_as("anonymous")},
        response_headers=(RETRY_AFTER,),
        responses={
            202: ResponseSpec(
                AnonymousStartedResponse,
                description="The run, and the token that opens its result",
                examples=[Example(value=ANONYMOUS_STARTED_EXAMPLE)],
            ),
            **problem_responses(422, 503),
        },
    )
    async def start(
        self, data: AnonymousBody, anonymous_analyses: Analyses
    ) -> Response[AnonymousStartedResponse]:
        """A light analysis for free, a few times an hour. Keep the token: whoever has it can read the
        result for 24 hours, and nobody else.
        """
        started, token = await anonymous_analyses.start(data.username)
        out = AnonymousStartedResponse(
            run_id=started.run_id,
            status=started.status,
            poll_url=f"{PATH}/{token}",
            token=token,
            expires_at=started.expires_at,
        )
        # No Location header, because proxies log headers more often than bodies.
        return Response(out, status_code=202, headers={**NOT_KEPT, "Retry-After": POLL_AFTER_S})

    @get(
        "/{token:str}",
        operation_id="getAnonymousAnalysis",
        summary="Result without an account",
        opt={**PUBLIC, **counts_as("progress")},
        response_headers=(RETRY_AFTER,),
        responses={
            200: ResponseSpec(
                AnonymousResponse,
                description="How far it is, and its result",
                examples=[Example(value=ANONYMOUS_EXAMPLE)],
            ),
            **problem_responses(404, 503),
        },
    )
    async def read(self, token: Token, anonymous_analyses: Analyses) -> Response[AnonymousResponse]:
        """How far an analysis without an account is, and its result when there is one. `outcome` says how it
        ended.
        """
        found = await anonymous_analyses.get(token)
        waiting = {"Retry-After": POLL_AFTER_S} if found.status in UNFINISHED else {}
        return Response(AnonymousResponse(**msgspec.structs.asdict(found)), headers={**NOT_KEPT, **waiting})
