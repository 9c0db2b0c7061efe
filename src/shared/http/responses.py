"""Documentation of responses, and conversion between structs."""

from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from litestar.datastructures import ResponseHeader
from litestar.openapi.datastructures import ResponseSpec

from shared.http.problems import MEDIA_TYPE, Problem

TargetStruct = TypeVar("TargetStruct", bound=msgspec.Struct)

LOCATION = ResponseHeader(
    name="Location", documentation_only=True, required=True, description="The URL of the new resource."
)
ENTITY_TAG = ResponseHeader(
    name="ETag", documentation_only=True, required=True, description="The version, for `If-Match`."
)
RUN_LOCATION = ResponseHeader(
    name="Location", documentation_only=True, description="The status URL of the run, if a run was started."
)
RETRY_AFTER = ResponseHeader(
    name="Retry-After", documentation_only=True, description="Seconds until the next poll, while it runs."
)


def ok(kind: Any, description: str, media_type: str = "application/json") -> ResponseSpec:  # noqa: ANN401  any type
    """Declare a success response that does not follow from the handler's return annotation."""
    return ResponseSpec(kind, description=description, media_type=media_type, generate_examples=False)


def problems(*statuses: int) -> dict[int, ResponseSpec]:
    """Declare the errors of one operation, in addition to those of all operations (``core.api.openapi``)."""
    return {status: ok(Problem, HTTPStatus(status).phrase, MEDIA_TYPE) for status in statuses}


NOT_MODIFIED = {304: ok(None, "The version in `If-None-Match` is current")}


def struct_from(kind: type[TargetStruct], source: object, **computed: object) -> TargetStruct:
    """Copy the fields with equal names, for example from a domain struct to a response.

    Computed and renamed fields are passed by keyword.
    """
    fields = {name: getattr(source, name) for name in kind.__struct_fields__ if name not in computed}
    return kind(**fields, **computed)
