"""The id that ties a request, its answer and its log lines together."""

import re
from contextvars import ContextVar
from random import getrandbits

HEADER = b"x-request-id"
_ACCEPTED = re.compile(rb"[A-Za-z0-9._-]{8,64}")

current_request_id: ContextVar[str] = ContextVar("request_id", default="")


def request_id_from(headers: list[tuple[bytes, bytes]]) -> str:
    """Take the client's own id when it is a plain one, so that its logs and ours meet."""
    for name, value in headers:
        if name == HEADER and _ACCEPTED.fullmatch(value):
            return value.decode()
    return f"{getrandbits(128):032x}"  # unique, not secret
