"""Whether Stripe wrote what somebody sent: over the bytes as they came, before anything reads them."""

import hmac
import re

from shared.errors import Malformed

TOLERANCE_S = 300
HEADER_LENGTH_MAX = 2_000
# As it is written is how it was signed: without zeros in front, in ASCII.
_INSTANT = re.compile(rb"[1-9][0-9]{0,11}")
_DIGEST = re.compile(rb"[0-9a-f]{64}")


class SignatureInvalid(Malformed):
    code = "signature_invalid"

    def __str__(self) -> str:
        return "The Stripe-Signature header does not fit this body and any secret of ours."


class SignatureExpired(Malformed):
    code = "signature_expired"

    def __str__(self) -> str:
        return f"The signature was made more than {TOLERANCE_S} seconds before or after now."


def check_signature(body: bytes, header: bytes, secrets: tuple[str, ...], now_s: float) -> None:
    """Raises SignatureInvalid or SignatureExpired. Any of the secrets will do: while one is exchanged for
    another Stripe signs with both.
    """
    signed_at, digests = _read(header)
    message = signed_at + b"." + body
    # All are compared, and each as slowly as the others: how long it takes tells nothing.
    fits = [
        hmac.compare_digest(hmac.digest(secret.encode(), message, "sha256").hex().encode(), digest)
        for secret in secrets
        for digest in digests
    ]
    if not any(fits):
        raise SignatureInvalid
    if abs(now_s - int(signed_at)) > TOLERANCE_S:
        raise SignatureExpired


def _read(header: bytes) -> tuple[bytes, list[bytes]]:
    """When, and by what of the scheme v1. There is a v0 too, which is for tests and proves nothing."""
    if len(header) > HEADER_LENGTH_MAX:
        raise SignatureInvalid
    items = [item.strip().partition(b"=") for item in header.split(b",")]
    instants = [value for name, _, value in items if name == b"t"]
    digests = [value for name, _, value in items if name == b"v1" and _DIGEST.fullmatch(value)]
    if len(instants) != 1 or not _INSTANT.fullmatch(instants[0]) or not digests:
        raise SignatureInvalid
    return instants[0], digests
