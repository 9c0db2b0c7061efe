"""Conversion of all errors to RFC 9457 problem documents."""

import re
from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from shared.errors import (
    Conflict,
    DomainError,
    Forbidden,
    Invalid,
    Malformed,
    NotFound,
    PaymentRequired,
    PreconditionFailed,
    RateLimited,
    TooLarge,
    TooSlow,
    Unauthenticated,
    Unavailable,
    Unsupported,
    UpstreamFailed,
)
from shared.http.allow_header import allow
from shared.middleware.request_context import context_of
from shared.middleware.request_id import current_request_id

MEDIA_TYPE = "application/problem+json"
INTERNAL = HTTPStatus.INTERNAL_SERVER_ERROR

STATUS: dict[type[DomainError], HTTPStatus] = {
    Malformed: HTTPStatus.BAD_REQUEST,
    TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    TooSlow: HTTPStatus.REQUEST_TIMEOUT,
    Unsupported: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    Invalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    Unauthenticated: HTTPStatus.UNAUTHORIZED,
    NotFound: HTTPStatus.NOT_FOUND,
    Forbidden: HTTPStatus.FORBIDDEN,
    Conflict: HTTPStatus.CONFLICT,
    PreconditionFailed: HTTPStatus.PRECONDITION_FAILED,
    PaymentRequired: HTTPStatus.PAYMENT_REQUIRED,
    RateLimited: HTTPStatus.TOO_MANY_REQUESTS,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    UpstreamFailed: HTTPStatus.BAD_GATEWAY,
}

HEADERS: dict[HTTPStatus, dict[str, str]] = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "Bearer"},
    HTTPStatus.SERVICE_UNAVAILABLE: {"Retry-After": "2"},
}

# Codes of the framework's own errors. For other statuses the code is derived from the status phrase.
CODES = {
    HTTPStatus.BAD_REQUEST: "invalid_request",
    HTTPStatus.NOT_FOUND: "route_not_found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    INTERNAL: "internal_error",
}

OUR_MISTAKE = "This is our mistake. Quote the request id when you report it."

log: structlog.stdlib.BoundLogger = structlog.get_logger("problems")


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    field: str
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request was refused (RFC 9457). ``code`` is stable; show ``detail`` to people."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    request_id: str
    errors: list[FieldError] = []
    facts: dict[str, int | str] = {}


PROBLEM_EXAMPLE: dict[str, object] = {
    "type": "urn:oslira:problem:insufficient_credits",
    "title": "Payment Required",
    "status": 402,
    "code": "insufficient_credits",
    "detail": "This needs 5 credits; 2 are available.",
    "request_id": "f2d9c8e14b3a4d0c",
    "facts": {"needed": 5, "available": 2},
}


def problem(
    status: HTTPStatus,
    code: str,
    detail: str,
    *,
    errors: list[FieldError] | None = None,
    facts: dict[str, int | str] | None = None,
) -> Problem:
    return Problem(
        type=f"urn:oslira:problem:{code}",
        title=status.phrase,
        status=status,
        code=code,
        detail=detail,
        request_id=current_request_id.get(),
        errors=errors or [],
        facts=facts or {},
    )


def _response(
    request: Request[Any, Any, Any], document: Problem, headers: dict[str, str]
) -> Response[Problem]:
    context_of(request.scope).code = document.code
    return Response(document, status_code=document.status, media_type=MEDIA_TYPE, headers=headers)


def status_of(error: Exception) -> tuple[HTTPStatus, str]:
    """Return the HTTP status and the problem code of an error."""
    if isinstance(error, DomainError):
        return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), error.code
    status = HTTPStatus(error.status_code) if isinstance(error, HTTPException) else INTERNAL
    return status, CODES.get(status, status.phrase.lower().replace(" ", "_"))


def headers_of(error: DomainError, status: HTTPStatus) -> dict[str, str]:
    headers = HEADERS.get(status, {})
    if error.retry_after_s is not None:
        headers = {**headers, "Retry-After": str(error.retry_after_s)}
    return headers


def refused(request: Request[Any, Any, Any], error: DomainError) -> Response[Problem]:
    status, code = status_of(error)
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        log.warning("unavailable", code=code, cause=repr(error.__cause__))
    document = problem(status, code, str(error), facts=error.facts)
    return _response(request, document, headers_of(error, status))


class _Extra(msgspec.Struct):
    """Litestar's description of one invalid parameter or field."""

    key: str = ""
    message: str = ""


_NOT_OURS = re.compile(r"(?s)^(?P<what>Invalid enum value|Object contains unknown field) (?P<quoted>.*)$")
_PLAIN_NAME = re.compile("`[A-Za-z_]{1,40}`")
_NO_BODY = _Extra(key="data", message="'data'")


def _field_errors(error: HTTPException) -> list[FieldError]:
    if not isinstance(error, ValidationException):
        return []
    try:
        extras = msgspec.convert(error.extra, list[_Extra])
    except msgspec.ValidationError:
        return []
    if extras == [_NO_BODY]:
        return [FieldError(field="body", message="A JSON body is needed")]
    return [FieldError(field=extra.key, message=_without_input(extra.message)) for extra in extras]


def _without_input(message: str) -> str:
    """Remove the quoted input from a decoder message, because it may be a misplaced secret.

    Proxies and clients log responses. A field name stays in the message if it consists of letters.
    """
    match = _NOT_OURS.match(message)
    if match is None or _PLAIN_NAME.fullmatch(match["quoted"]):
        return message
    return match["what"]


def refused_by_framework(request: Request[Any, Any, Any], error: HTTPException) -> Response[Problem]:
    status, code = status_of(error)
    if status >= INTERNAL:
        log.error("framework_error", exc_info=error)
    errors = _field_errors(error)
    detail = "; ".join(f"{item.field}: {item.message}" for item in errors) or _detail(error, status)
    methods = (error.headers or {}).get("allow")
    headers = {"Allow": allow(methods.split(", "))} if methods else {}
    return _response(request, problem(status, code, detail, errors=errors), headers)


def _detail(error: HTTPException, status: HTTPStatus) -> str:
    if status >= INTERNAL:
        return OUR_MISTAKE
    if isinstance(error, ValidationException):  # Litestar's text quotes the URL with its query
        return "The request does not fit the documentation."
    return error.detail


def broken(request: Request[Any, Any, Any], error: Exception) -> Response[Problem]:
    log.error("unhandled_error", exc_info=error)
    status = INTERNAL
    return _response(request, problem(status, CODES[status], OUR_MISTAKE), {})
