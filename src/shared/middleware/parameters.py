"""What every list takes."""

from typing import Annotated

from litestar.params import QueryParameter

LIMIT_MAX = 200

Limit = Annotated[int, QueryParameter(ge=1, le=LIMIT_MAX, description="Entries per page.")]
Cursor = Annotated[
    str | None, QueryParameter(max_length=128, description="`next_cursor` of the page before.")
]
