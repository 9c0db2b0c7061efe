"""Headers, parameters and problem responses that apply to every operation of the OpenAPI document.

The middleware adds them to all routes, so the handlers do not declare them.
"""

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

from litestar.handlers import HTTPRouteHandler
from litestar.openapi.spec import (
    OpenAPI,
    OpenAPIHeader,
    OpenAPIMediaType,
    OpenAPIResponse,
    OpenAPIType,
    Operation,
    Parameter,
    Reference,
    Schema,
)
from litestar.openapi.spec.enums import OpenAPIFormat
from litestar.routes import BaseRoute, HTTPRoute

from shared.http.problems import MEDIA_TYPE
from shared.middleware.idempotency import KEY_PATTERN

OF_THE_PUBLIC = (400, 429)
OF_THE_GATE = (400, 401, 403, 404, 422, 429, 503)
OF_A_BODY = (408, 413, 415, 503)  # every method but GET, because the middleware reads the body
OF_A_REPEATED_POST = (409,)

TEXT = Schema(type=OpenAPIType.STRING)
SECONDS = Schema(type=OpenAPIType.INTEGER, minimum=1)

ACCOUNT = Parameter(
    name="Oslira-Account",
    param_in="header",
    schema=Schema(type=OpenAPIType.STRING, format=OpenAPIFormat.UUID),
    description="The account meant, if you belong to several.",
    required=False,
)
IDEMPOTENCY_KEY = Parameter(
    name="Idempotency-Key",
    param_in="header",
    schema=Schema(type=OpenAPIType.STRING, pattern=KEY_PATTERN),
    description="New for each request, the same when you repeat one: the answer is the same, the effect one.",
    required=False,
)

REQUEST_ID = OpenAPIHeader(schema=TEXT, description="Quote it when you report a problem.", required=True)
RATE_LIMIT = OpenAPIHeader(schema=TEXT, description="How many requests are left in this window.")
RATE_LIMIT_POLICY = OpenAPIHeader(schema=TEXT, description="How many requests a window allows.")
RETRY_AFTER = OpenAPIHeader(schema=SECONDS, description="Seconds to wait for.", required=True)
AUTHENTICATE = OpenAPIHeader(schema=TEXT, description="`Bearer`", required=True)
REPLAYED = OpenAPIHeader(schema=TEXT, description="`true`: the answer to an earlier request with this key.")


def complete(document: OpenAPI, routes: Sequence[BaseRoute]) -> None:
    paths = document.paths or {}
    for path, method, handler in _operations(routes):
        operation: Operation | None = getattr(paths.get(path), method.lower(), None)
        if operation is not None:
            _complete(operation, method, is_public=handler.opt["access"] == "public")
            _tell_success(operation, handler)


def _operations(routes: Sequence[BaseRoute]) -> Iterator[tuple[str, str, HTTPRouteHandler]]:
    for route in routes:
        assert isinstance(route, HTTPRoute), "there are no websockets and no mounted applications"
        for method, (handler, _) in route.route_handler_map.items():
            if method != "OPTIONS":
                yield route.path_format or "/", method, handler


def _complete(operation: Operation, method: str, *, is_public: bool) -> None:
    parameters = [parameter for parameter in operation.parameters or [] if isinstance(parameter, Parameter)]
    for parameter in parameters:
        _without_null(parameter)
    if not is_public:
        parameters.append(ACCOUNT)
        if method == "POST":
            parameters.append(IDEMPOTENCY_KEY)
    operation.parameters = [*parameters]
    responses = operation.responses = operation.responses or {}
    for status in _refusals(method, is_public=is_public):
        described = responses.get(str(status))
        # Litestar documents its own 400 response, which is never sent.
        if not isinstance(described, OpenAPIResponse) or MEDIA_TYPE not in (described.content or {}):
            responses[str(status)] = _refusal(status)
    for status, response in responses.items():
        assert isinstance(response, OpenAPIResponse)
        response.headers = {**(response.headers or {}), **_headers(status, response, method)}


def _tell_success(operation: Operation, handler: HTTPRouteHandler) -> None:
    """Adds the handler's response headers, which Litestar omits if the response itself is described."""
    headers: dict[str, OpenAPIHeader | Reference] = {
        header.name: OpenAPIHeader(schema=TEXT, description=header.description, required=header.required)
        for header in handler.resolve_response_headers()
    }
    for status, response in (operation.responses or {}).items():
        if status.startswith("2") and isinstance(response, OpenAPIResponse):
            response.headers = {**headers, **(response.headers or {})}


def _refusals(method: str, *, is_public: bool) -> tuple[int, ...]:
    of_a_body = () if method == "GET" else OF_A_BODY
    if is_public:
        return OF_THE_PUBLIC + of_a_body
    return OF_THE_GATE + of_a_body + (OF_A_REPEATED_POST if method == "POST" else ())


def _refusal(status: int) -> OpenAPIResponse:
    problem = OpenAPIMediaType(schema=Reference(ref="#/components/schemas/Problem"))
    return OpenAPIResponse(description=HTTPStatus(status).phrase, content={MEDIA_TYPE: problem})


def _headers(status: str, response: OpenAPIResponse, method: str) -> dict[str, OpenAPIHeader | Reference]:
    headers: dict[str, OpenAPIHeader | Reference] = {
        "X-Request-Id": REQUEST_ID,
        "RateLimit": RATE_LIMIT,
        "RateLimit-Policy": RATE_LIMIT_POLICY,
    }
    if status == "401":
        headers["WWW-Authenticate"] = AUTHENTICATE
    if status in {"429", "503"} and MEDIA_TYPE in (response.content or {}):
        headers["Retry-After"] = RETRY_AFTER
    if method == "POST":
        headers["Idempotency-Replayed"] = REPLAYED
    return headers


def _without_null(parameter: Parameter) -> None:
    """Query parameters and headers cannot be null: an optional one is omitted."""
    schema = parameter.schema
    assert isinstance(schema, Schema)
    if schema.one_of:
        (only,) = (one for one in schema.one_of if isinstance(one, Schema) and one.type != OpenAPIType.NULL)
        schema.one_of, schema.type, schema.format = None, only.type, only.format
    if isinstance(schema.type, list):
        schema.type = next(kind for kind in schema.type if kind != OpenAPIType.NULL)
        schema.enum = _without_none(schema.enum)


def _without_none(values: Sequence[Any] | None) -> list[Any] | None:
    return None if values is None else [value for value in values if value is not None]
