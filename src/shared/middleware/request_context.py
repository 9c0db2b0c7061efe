"""Request context: facts that the middleware collects for the response and the request log."""

import msgspec
from litestar.types import HTTPScope

from shared.caller import AuthContext
from shared.middleware.request_body import RequestBody

Headers = list[tuple[bytes, bytes]]

_KEY = "context"


class RequestContext(msgspec.Struct):
    auth: AuthContext | None = None
    response_headers: Headers = []
    code: str | None = None  # of the problem document in the response
    body: RequestBody | None = None  # None for methods without a body


def open_context(scope: HTTPScope) -> RequestContext:
    context = RequestContext()
    scope["state"] = {_KEY: context}
    return context


def context_of(scope: HTTPScope) -> RequestContext:
    return scope["state"][_KEY]
