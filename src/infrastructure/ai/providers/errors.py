"""Classification of error responses, common to all providers."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

from infrastructure.ai.providers.base import ErrorKind, ProviderError
from shared.retry import RETRY_AFTER_MAX_S, retry_after_s

T = TypeVar("T")

# Errors of msgspec for invalid JSON, a wrong structure, invalid UTF-8, or excessive nesting.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_CODE = re.compile(r"[a-z0-9_]{1,60}")
_NUMBER = re.compile(r"\d+(?:\.\d*)?", re.ASCII)

# Codes take precedence over the status: retries do not help with an exhausted quota, and an unknown model may
# be a 400.
_BY_CODE: dict[str, ErrorKind] = {
    "insufficient_quota": "unauthorised",
    "billing_hard_limit_reached": "unauthorised",
    "billing_not_active": "unauthorised",
    "billing_error": "unauthorised",
    "enforced_spend_limit_reached": "unauthorised",
    "organization_on_hold": "unauthorised",
    "model_not_found": "unknown_model",
    "context_length_exceeded": "invalid",
}
_BY_STATUS: dict[int, ErrorKind] = {
    400: "invalid",
    401: "unauthorised",
    402: "unauthorised",
    403: "unauthorised",
    408: "unavailable",
    409: "unavailable",
    413: "invalid",
    422: "invalid",
    429: "rate_limited",
}
# By the providers' documentation, requests with these statuses are neither processed nor charged.
_NOT_PROCESSED = frozenset({400, 401, 402, 403, 404, 409, 413, 422, 429, 503, 529})


def error_of_response(
    status: int, headers: Mapping[str, str], body: bytes, *, is_simulated: bool
) -> ProviderError:
    code = code_of(body)
    return ProviderError(
        _BY_CODE.get(code) or _kind_of(status, code),
        was_sent=status not in _NOT_PROCESSED,
        is_simulated=is_simulated,
        retry_after_s=requested_wait_s(headers),
        detail=f"{status} {code}".rstrip(),
    )


def _kind_of(status: int, code: str) -> ErrorKind:
    if status == 404:  # noqa: PLR2004  not found
        # A 404 without an error code comes from a wrong URL, not from an unknown model.
        return "unknown_model" if code else "malformed_response"
    if status >= 500:  # noqa: PLR2004  any server error
        return "unavailable"
    return _BY_STATUS.get(status, "malformed_response")


def code_of(body: bytes) -> str:
    """The provider's most specific error code, or an empty string."""
    try:
        document = msgspec.json.decode(body)
    except _UNREADABLE:
        return ""
    error = _member(document, "error")
    codes = (_member(_member(error, "details"), "error_code"), _member(error, "code"), _member(error, "type"))
    return next((code for code in map(readable_code, codes) if code), "")


def readable_code(code: object) -> str:
    """Empty if it is not a code: it may be a sentence that quotes the prompt."""
    return code if isinstance(code, str) and _CODE.fullmatch(code) else ""


def _member(value: object, name: str) -> object:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None


def requested_wait_s(headers: Mapping[str, str]) -> float | None:
    """Seconds from ``retry-after-ms``, which is more precise, or from ``Retry-After``."""
    milliseconds = headers.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(milliseconds):
        return min(float(milliseconds) / 1_000, RETRY_AFTER_MAX_S)
    return retry_after_s(headers.get("retry-after"))


def decode_response(body: bytes, decoder: msgspec.json.Decoder[T], *, is_simulated: bool) -> T:
    """The decoded response. Raises ProviderError if the body does not match."""
    try:
        return decoder.decode(body)
    except _UNREADABLE:
        pass  # raised below, so that no exception context quotes the body
    raise malformed_response(f"200 {code_of(body)}".rstrip(), is_simulated=is_simulated)


def malformed_response(detail: str, *, is_simulated: bool) -> ProviderError:
    return ProviderError("malformed_response", was_sent=True, is_simulated=is_simulated, detail=detail)
