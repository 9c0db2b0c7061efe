"""Request, query parameter and request body types that several slices use."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from litestar import Request
from litestar.params import QueryParameter

from shared.caller import Caller
from shared.pagination import CURSOR_PATTERN, POSITION_PATTERN

LIMIT_MAX = 200

AuthenticatedRequest = Request[Caller, Any, Any]

Limit = Annotated[int, QueryParameter(ge=1, le=LIMIT_MAX, description="Entries per page.")]


def cursor_parameter(pattern: str) -> QueryParameter:
    # The pattern is only for the schema: CursorInvalid has a clearer text than the decoder's error.
    return QueryParameter(
        description="`next_cursor` of the previous page.", schema_extra={"pattern": pattern}
    )


Cursor = Annotated[str | None, cursor_parameter(CURSOR_PATTERN)]
PositionCursor = Annotated[str | None, cursor_parameter(POSITION_PATTERN)]
Time = Annotated[
    datetime | None, QueryParameter(description="A time with its offset, such as 2026-11-01T00:00:00Z.")
]

TimeField = Annotated[datetime, msgspec.Meta(tz=True)]


class RequestBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    @property
    def sent_fields(self) -> dict[str, Any]:
        """The fields of a PATCH body that the client sent, including those sent as null."""
        fields = msgspec.structs.asdict(self)
        return {name: value for name, value in fields.items() if value is not msgspec.UNSET}


def text_field(
    length_max: int, pattern: str, description: str | None = None, *, length_min: int = 1
) -> msgspec.Meta:
    """The pattern is only for the schema: the domain's error is clearer than the decoder's error."""
    return msgspec.Meta(
        min_length=length_min,
        max_length=length_max,
        description=description,
        extra_json_schema={"description": description, "extra": {"pattern": pattern}},
    )
