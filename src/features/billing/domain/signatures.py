"""Signature check of Stripe's webhook, made on the raw body before it is parsed."""

import hmac
import re

from shared.errors import Malformed

TOLERANCE_S = 300
HEADER_LENGTH_MAX = 2_000
# The timestamp is part of the signed text, so only its canonical form is accepted: ASCII, no leading zeros.
_INSTANT = re.compile(rb"[1-9][0-9]{0,11}")
_DIGEST = re.compile(rb"[0-9a-f]{64}")


class SignatureInvalid(Malformed):
    code = "signature_invalid"
    text = "The Stripe-Signature header does not fit this body and any secret of ours."


class SignatureExpired(Malformed):
    code = "signature_expired"
    text = f"The signature was made more than {TOLERANCE_S} seconds before or after now."


def check_signature(body: bytes, header: bytes, secrets: tuple[str, ...], now_s: float) -> None:
    """Raises SignatureInvalid or SignatureExpired. Any of the secrets may match: during a rotation Stripe
    signs with both.
    """
    signed_at, digests = _read(header)
    message = signed_at + b"." + body
    # Every pair is compared in constant time, so that the duration reveals nothing about a match.
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
    """Return the timestamp and the v1 digests. Stripe sends v0 only for test events; it proves nothing."""
    if len(header) > HEADER_LENGTH_MAX:
        raise SignatureInvalid
    items = [item.strip().partition(b"=") for item in header.split(b",")]
    instants = [value for name, _, value in items if name == b"t"]
    digests = [value for name, _, value in items if name == b"v1" and _DIGEST.fullmatch(value)]
    if len(instants) != 1 or not _INSTANT.fullmatch(instants[0]) or not digests:
        raise SignatureInvalid
    return instants[0], digests
