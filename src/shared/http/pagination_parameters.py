"""Query parameters of all list endpoints."""

from typing import Annotated

from litestar.params import QueryParameter

from shared.pagination import CURSOR_PATTERN, POSITION_PATTERN

LIMIT_MAX = 200

Limit = Annotated[int, QueryParameter(ge=1, le=LIMIT_MAX, description="Entries per page.")]


def cursor_of(pattern: str) -> QueryParameter:
    # The pattern is only for the schema: CursorInvalid has a clearer text than the decoder's error.
    return QueryParameter(description="`next_cursor` of the page before.", schema_extra={"pattern": pattern})


Cursor = Annotated[str | None, cursor_of(CURSOR_PATTERN)]
PositionCursor = Annotated[str | None, cursor_of(POSITION_PATTERN)]
