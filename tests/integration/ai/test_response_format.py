from typing import Any

import msgspec
import pytest

from infrastructure.ai.structured.response_format import Malformed, form_of
from tests.fakes.ai import Score


class Anything(msgspec.Struct):
    parts: list[Any]


def test_valid_completion_is_decoded():
    assert form_of(Score).decode(' {"score": 7, "more": [1]} ') == Score(7)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not one JSON document"),
        ("```json\n{}\n```", "not one JSON document"),
        ("{}", "missing required field `score`"),
        ('{"score": 7.5}', "Expected `int`, got `float`"),
        ('{"score": "7"}', "Expected `int`, got `str`"),
        ("\ud800", "not one JSON document"),
    ],
)
def test_invalid_completion_raises_malformed(text, complaint):
    with pytest.raises(Malformed, match=complaint):
        form_of(Score).decode(text)


@pytest.mark.parametrize(("depth", "is_taken"), [(32, True), (33, False), (1_000_000, False)])
def test_nesting_is_limited(depth, is_taken):
    form = form_of(Anything)
    lists = depth - 1

    try:
        form.decode('{"parts":' + "[" * lists + "]" * lists + "}")
    except Malformed:
        assert not is_taken
    else:
        assert is_taken


def test_response_format_is_named_after_its_type():
    assert form_of(Score).name == "Score"


@pytest.mark.parametrize("answer", [dict[str, int], list[Any], int | None], ids=str)
def test_type_without_named_fields_raises_type_error(answer):
    with pytest.raises(TypeError, match="named fields"):
        form_of(answer)


def test_response_format_is_cached():
    assert form_of(Score) is form_of(Score)
