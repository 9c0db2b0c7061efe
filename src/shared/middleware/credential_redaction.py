"""Removal of the request's credentials from log lines."""

from contextvars import ContextVar

LENGTH_MIN = 8  # shorter values are no secrets and occur in ordinary text

current_credentials: ContextVar[tuple[bytes, ...]] = ContextVar("credentials", default=())


def without_credentials(text: str) -> str:
    """Replace the credentials of the current request, which can have any form.

    An Idempotency-Key can be any text, and it decrypts a stored response.
    """
    for credential in current_credentials.get():
        if len(credential) >= LENGTH_MIN:
            text = text.replace(credential.decode("latin-1"), "[redacted]")
    return text
