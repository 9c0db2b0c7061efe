import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.middleware.json_depth import STRING, depth_exceeds


def depth_of(value):
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


TEXTS = st.text(alphabet='[]{}"\\a,:\n') | st.text()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=30,
)


@settings(deadline=None)
@given(
    VALUES,
    st.integers(0, 8),
    st.sampled_from([msgspec.json.encode, lambda value: json.dumps(value).encode()]),
)
def test_depth_agrees_with_a_decoder(value, depth_max, encode):
    assert depth_exceeds(encode(value), depth_max) is (depth_of(value) > depth_max)


@pytest.mark.parametrize("piece", [rb"\"", rb"\\", b"[", b"a"], ids=ascii)
def test_unterminated_string_is_scanned_once(piece):
    body = b"[]" * 65 + b'"' + piece * 1_000

    # If it were not one match, each of its quotes would start a scan of the rest.
    assert STRING.findall(body) == [body[130:]]
