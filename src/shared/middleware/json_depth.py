"""Nesting depth of JSON, measured without decoding: decoders recurse, so a deep body is a cheap attack."""

import re

# An unterminated string is one match as well, so that no text is scanned twice.
STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def depth_exceeds(body: bytes, depth_max: int) -> bool:
    """Return whether the nesting is deeper; brackets inside strings do not count."""
    if body.count(b"[") + body.count(b"{") <= depth_max:
        return False
    depth = 0
    for bracket in STRING.sub(b"", body).translate(None, _NOT_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > depth_max:
            return True
    return False
