"""OpenAPI document: defaults of every handler, and what the middleware adds to every operation.

The middleware adds headers, parameters and problem responses to all routes, so handlers do not declare them.
"""

import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from inspect import cleandoc
from typing import Any

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.spec import (
    Example,
    OpenAPI,
    OpenAPIHeader,
    OpenAPIMediaType,
    OpenAPIResponse,
    OpenAPIType,
    Operation,
    Parameter,
    Reference,
    RequestBody,
    Schema,
)
from litestar.openapi.spec.enums import OpenAPIFormat
from litestar.routes import HTTPRoute

from core.api.openapi_examples import Examples
from core.api.route_policy import document_route_policy, route_policy_text
from shared.http.problems import MEDIA_TYPE, PROBLEM_EXAMPLE
from shared.middleware.idempotency import KEY_PATTERN

PUBLIC_PROBLEMS = (400, 429)
AUTHENTICATED_PROBLEMS = (400, 401, 403, 404, 422, 429, 503)
BODY_PROBLEMS = (408, 413, 415, 503)  # every method but GET, because the middleware reads the body
IDEMPOTENCY_PROBLEMS = (409,)
# Litestar names a generic struct after the full path of its argument.
GENERIC_NAME = re.compile(r"(?P<generic>Page|ReportResponse)_[\w.]*?(?P<item>\w+?)(Response)?_$")

TEXT = Schema(type=OpenAPIType.STRING)
SECONDS = Schema(type=OpenAPIType.INTEGER, minimum=1)

ACCOUNT = Parameter(
    name="Oslira-Account",
    param_in="header",
    schema=Schema(type=OpenAPIType.STRING, format=OpenAPIFormat.UUID),
    description="The account, if you are a member of several.",
    required=False,
)
IDEMPOTENCY_KEY = Parameter(
    name="Idempotency-Key",
    param_in="header",
    schema=Schema(type=OpenAPIType.STRING, pattern=KEY_PATTERN),
    description="A new key for each request. A request with the same key returns the same response "
    "and has no second effect.",
    required=False,
)

REQUEST_ID = OpenAPIHeader(schema=TEXT, description="Include it when you report a problem.", required=True)
RATE_LIMIT = OpenAPIHeader(schema=TEXT, description="The requests left in this window.")
RATE_LIMIT_POLICY = OpenAPIHeader(schema=TEXT, description="The requests that a window allows.")
RETRY_AFTER = OpenAPIHeader(schema=SECONDS, description="Seconds to wait.", required=True)
AUTHENTICATE = OpenAPIHeader(schema=TEXT, description="`Bearer`", required=True)
REPLAYED = OpenAPIHeader(
    schema=TEXT, description="`true`: the stored response to an earlier request with this key."
)


def describe_handlers(litestar: Litestar) -> None:
    """Set the operation id (from the handler's name), the summary (first line of its docstring) and the
    description (the rest). The document itself is generated on its first use, after this.
    """
    for _, _, handler in _operations(litestar):
        summary, _, details = cleandoc(handler.fn.__doc__ or "").partition("\n\n")
        handler.operation_id = handler.operation_id or operation_id(handler.handler_name)
        handler.summary = handler.summary or " ".join(summary.split()).removesuffix(".")
        handler.description = "\n\n".join(filter(None, (details, route_policy_text(handler.opt["access"]))))
        document_route_policy(handler)


def operation_id(handler_name: str) -> str:
    first, *rest = handler_name.split("_")
    return first + "".join(word.title() for word in rest)


def complete(litestar: Litestar) -> None:
    """Add parameters, headers, problems and examples to the generated document."""
    document = litestar.openapi_schema
    paths = document.paths or {}
    examples = Examples(document)
    for path, method, handler in _operations(litestar):
        operation: Operation | None = getattr(paths.get(path), method.lower(), None)
        if operation is not None:
            is_public = handler.opt["access"] == "public"
            _add_parameters(operation, method, is_public=is_public)
            _add_problems(operation, method, is_public=is_public)
            _add_headers(operation, method, handler)
            _add_examples(operation, examples)
    document.components.schemas["Problem"].examples = [PROBLEM_EXAMPLE]  # instead of one for each response
    _shorten_generic_names(document)


def _operations(litestar: Litestar) -> Iterator[tuple[str, str, HTTPRouteHandler]]:
    for route in litestar.routes:
        assert isinstance(route, HTTPRoute), "there are no websockets and no mounted applications"
        for method, (handler, _) in route.route_handler_map.items():
            if method != "OPTIONS" and handler.resolve_include_in_schema():
                yield route.path_format or "/", method, handler


def _add_parameters(operation: Operation, method: str, *, is_public: bool) -> None:
    parameters = [parameter for parameter in operation.parameters or [] if isinstance(parameter, Parameter)]
    for parameter in parameters:
        _remove_null(parameter)
    if not is_public:
        parameters.append(ACCOUNT)
        if method == "POST":
            parameters.append(IDEMPOTENCY_KEY)
    operation.parameters = [*parameters]


def _add_problems(operation: Operation, method: str, *, is_public: bool) -> None:
    responses = operation.responses = operation.responses or {}
    for status in _problem_statuses(method, is_public=is_public):
        described = responses.get(str(status))
        # Litestar documents its own 400 response, which is never sent.
        if not isinstance(described, OpenAPIResponse) or MEDIA_TYPE not in (described.content or {}):
            problem = OpenAPIMediaType(schema=Reference(ref="#/components/schemas/Problem"))
            phrase = HTTPStatus(status).phrase
            responses[str(status)] = OpenAPIResponse(description=phrase, content={MEDIA_TYPE: problem})


def _problem_statuses(method: str, *, is_public: bool) -> tuple[int, ...]:
    body_problems = () if method == "GET" else BODY_PROBLEMS
    if is_public:
        return PUBLIC_PROBLEMS + body_problems
    return AUTHENTICATED_PROBLEMS + body_problems + (IDEMPOTENCY_PROBLEMS if method == "POST" else ())


def _add_headers(operation: Operation, method: str, handler: HTTPRouteHandler) -> None:
    # Litestar omits the handler's headers if the handler describes the response itself.
    success: dict[str, OpenAPIHeader | Reference] = {
        header.name: OpenAPIHeader(schema=TEXT, description=header.description, required=header.required)
        for header in handler.resolve_response_headers()
    }
    for status, response in (operation.responses or {}).items():
        assert isinstance(response, OpenAPIResponse)
        own = success if status.startswith("2") else {}
        response.headers = {**(response.headers or {}), **own, **_headers(status, response, method)}
        if response.description == HTTPStatus(int(status)).description:
            response.description = HTTPStatus(int(status)).phrase


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


def _add_examples(operation: Operation, examples: Examples) -> None:
    if isinstance(operation.request_body, RequestBody):
        for media in operation.request_body.content.values():
            assert media.schema is not None
            media.examples = {"example": _example(examples.request(media.schema))}
    for response in (operation.responses or {}).values():
        assert isinstance(response, OpenAPIResponse)
        for media_type, media in (response.content or {}).items():
            if media.schema is not None and media_type != MEDIA_TYPE:
                media.examples = {"example": _example(examples.response(media.schema))}


def _example(value: object) -> Example:
    # Encoded here, because Litestar removes null fields from an example.
    return Example(value=msgspec.Raw(msgspec.json.encode(value)))


def _shorten_generic_names(document: OpenAPI) -> None:
    """Name the schema of a page of endpoints ``EndpointPage``, without the path of the module."""
    for path in (document.paths or {}).values():
        for response in ((path.get and path.get.responses) or {}).values():
            assert isinstance(response, OpenAPIResponse)
            for media in (response.content or {}).values():
                if isinstance(media.schema, Reference):
                    media.schema.ref = _short_name(media.schema.ref)
    schemas = document.components.schemas
    for name in [*schemas]:
        schemas[_short_name(name)] = schemas.pop(name)


def _short_name(name: str) -> str:
    return GENERIC_NAME.sub(lambda match: match["item"] + match["generic"].removesuffix("Response"), name)


def _remove_null(parameter: Parameter) -> None:
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
