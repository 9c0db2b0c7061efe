"""Exceptions that become error responses in the provider's own format."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from litestar import Request, Response

AnyRequest = Request[Any, Any, Any]
ErrorForm = Callable[["RequestRejected"], dict[str, Any]]


class RequestRejected(Exception):
    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, code, message)
        self.status, self.code, self.message, self.param = status, code, message, param
        self.headers = dict(headers or {})


def error_handlers(form: ErrorForm) -> dict[Any, Any]:
    """Returns the exception handlers of a router."""

    def respond(_: AnyRequest, error: RequestRejected) -> Response[dict[str, Any]]:
        return Response(form(error), status_code=error.status, headers=error.headers)

    return {RequestRejected: respond}


async def document_of(request: AnyRequest, code: str) -> dict[str, Any]:
    """Returns the body; rejects one that is not an object."""
    try:
        return msgspec.json.decode(await request.body(), type=dict[str, Any])
    except msgspec.DecodeError:
        raise RequestRejected(400, code, "We could not parse the JSON body of your request.") from None
