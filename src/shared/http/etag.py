"""ETag, If-Match and If-None-Match (RFC 9110, 13.1); the tag of an object is its version."""

import re
from typing import Annotated

from litestar.params import HeaderParameter

IfMatch = Annotated[
    str | None,
    HeaderParameter(name="If-Match", description="The `ETag` you have seen: refuse if it is another by now."),
]
IfNoneMatch = Annotated[
    str | None,
    HeaderParameter(name="If-None-Match", description="The `ETag` you have: answer 304 if it still holds."),
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


def is_known(if_none_match: str | None, version: int) -> bool:
    """Return whether the client already has this version; strong and weak tags both match."""
    if if_none_match is None:
        return False
    if if_none_match.strip() == "*":
        return True
    return any(tag == str(version) for _, tag in _tags(if_none_match))


def _tags(header: str) -> list[tuple[str, str]]:
    return _EACH.findall(header) if _TAGS.fullmatch(header) else []
