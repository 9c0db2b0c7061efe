"""What a request proves itself by, so that whoever writes a log line can leave it out."""

from contextvars import ContextVar

LENGTH_MIN = 8  # anything shorter is no secret, and stands in ordinary text

current_credentials: ContextVar[tuple[bytes, ...]] = ContextVar("credentials", default=())


def without_credentials(text: str) -> str:
    """Whatever shape they have: an Idempotency-Key may be any text, and a kept answer opens with it."""
    for credential in current_credentials.get():
        if len(credential) >= LENGTH_MIN:
            text = text.replace(credential.decode("latin-1"), "[redacted]")
    return text
