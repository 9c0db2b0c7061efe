"""ETag, If-Match and If-None-Match (RFC 9110, 13.1); the tag of an object is its version."""

import re
from typing import Annotated, Any

from litestar import Response
from litestar.params import HeaderParameter

IfMatch = Annotated[
    str | None,
    HeaderParameter(
        name="If-Match", description="The `ETag` of the version to change; another version is 412."
    ),
]
IfNoneMatch = Annotated[
    str | None,
    HeaderParameter(name="If-None-Match", description="The `ETag` of your copy; 304 if it is current."),
]
# A client may store the response, but must revalidate it before each use.
REVALIDATED = {"Cache-Control": "private, no-cache"}

_TAG = r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"'
_TAGS = re.compile(rf"\s*{_TAG}\s*(?:,\s*{_TAG}\s*)*")
_EACH = re.compile(_TAG)


def entity_tag(version: int) -> str:
    return f'"{version}"'


def expected_versions(if_match: str | None) -> frozenset[int] | None:
    """Return the versions that a change may start from; None allows any version.

    A weak or malformed tag matches no version, because rejecting the change is safe.
    """
    if if_match is None or if_match.strip() == "*":
        return None
    return frozenset(
        int(tag) for weak, tag in _tags(if_match) if not weak and re.fullmatch(r"[1-9][0-9]{0,8}", tag)
    )


def versioned_response(body: object, version: int, if_none_match: str | None) -> Response[Any]:
    """Return 304 without a body if the client already has this version."""
    headers = {**REVALIDATED, "ETag": entity_tag(version)}
    if _is_current(if_none_match, version):
        return Response(None, status_code=304, headers=headers)
    return Response(body, headers=headers)


def _is_current(if_none_match: str | None, version: int) -> bool:
    """Strong and weak tags both match."""
    if if_none_match is None:
        return False
    if if_none_match.strip() == "*":
        return True
    return any(tag == str(version) for _, tag in _tags(if_none_match))


def _tags(header: str) -> list[tuple[str, str]]:
    return _EACH.findall(header) if _TAGS.fullmatch(header) else []
