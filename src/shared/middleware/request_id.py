"""Request id that connects a request, its response and its log lines."""

import re
from contextvars import ContextVar
from random import getrandbits

HEADER = b"x-request-id"
_ACCEPTED = re.compile(rb"[A-Za-z0-9._-]{8,64}")

current_request_id: ContextVar[str] = ContextVar("request_id", default="")


def request_id_from(headers: list[tuple[bytes, bytes]]) -> str:
    """Use the client's id if it has the accepted form, so that its logs and ours can be joined."""
    for name, value in headers:
        if name == HEADER and _ACCEPTED.fullmatch(value):
            return value.decode()
    return f"{getrandbits(128):032x}"  # unique, not secret
