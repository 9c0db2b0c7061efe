"""Request context: facts that the middleware collects for the response and the request log."""

import msgspec
from litestar.types import HTTPScope

from shared.caller import AuthContext
from shared.middleware.request_body import RequestBody

Headers = list[tuple[bytes, bytes]]

_KEY = "passage"


class RequestContext(msgspec.Struct):
    visit: AuthContext | None = None
    answer_headers: Headers = []
    code: str | None = None  # of the problem document in the response
    body: RequestBody | None = None  # None for methods without a body


def open_passage(scope: HTTPScope) -> RequestContext:
    passage = RequestContext()
    scope["state"] = {_KEY: passage}
    return passage


def passage_of(scope: HTTPScope) -> RequestContext:
    return scope["state"][_KEY]
