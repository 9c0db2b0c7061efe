"""Requests to a simulated provider: JSON bodies of unknown shape, and rejections in the provider's format."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from litestar import Request, Response

Value = Any
Document = dict[str, Any]


def part_of(document: Document, name: str) -> Document:
    """Returns the object of that name, or an empty one."""
    found = document.get(name)
    return cast("Document", found) if isinstance(found, dict) else {}


def list_of(document: Document, name: str) -> list[Any]:
    found = document.get(name)
    return cast("list[Any]", found) if isinstance(found, list) else []


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


def openai_error(status: int, code: str, message: str, param: str | None = None) -> Value:
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")  # noqa: PLR2004
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def anthropic_error(_: int, code: str, message: str) -> Value:
    error = {"type": code, "message": message}
    return {"type": "error", "error": error, "request_id": "req_simulated"}


def apify_error(_: int, code: str, message: str) -> Value:
    return {"error": {"type": code, "message": message}}


def stripe_error(status: int, code: str, message: str, param: str | None = None) -> Value:
    kinds = {402: "card_error"}
    kind = kinds.get(status, "api_error" if status >= 500 else "invalid_request_error")  # noqa: PLR2004
    error = {"message": message, "type": "idempotency_error" if code == "idempotency_error" else kind}
    if kind == "card_error":
        error["decline_code"] = "generic_decline"
    return {"error": {**error, "code": code, "param": param}}


def plain_error(_: int, code: str, message: str) -> Value:
    return {"code": code, "message": message}
