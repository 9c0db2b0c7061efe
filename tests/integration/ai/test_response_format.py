from typing import Any

import msgspec
import pytest

from infrastructure.ai.response_format import Malformed, response_format
from tests.fakes.ai import Score


class Anything(msgspec.Struct):
    parts: list[Any]


def test_valid_completion_is_decoded():
    assert response_format(Score).decode(' {"score": 7, "more": [1]} ') == Score(7)


@pytest.mark.parametrize(
    ("text", "validation_error"),
    [
        ("", "not one JSON document"),
        ("```json\n{}\n```", "not one JSON document"),
        ("{}", "missing required field `score`"),
        ('{"score": 7.5}', "Expected `int`, got `float`"),
        ('{"score": "7"}', "Expected `int`, got `str`"),
        ("\ud800", "not one JSON document"),
    ],
)
def test_invalid_completion_raises_malformed(text, validation_error):
    with pytest.raises(Malformed, match=validation_error):
        response_format(Score).decode(text)


@pytest.mark.parametrize(("depth", "is_taken"), [(32, True), (33, False), (1_000_000, False)])
def test_nesting_is_limited(depth, is_taken):
    form = response_format(Anything)
    lists = depth - 1

    try:
        form.decode('{"parts":' + "[" * lists + "]" * lists + "}")
    except Malformed:
        assert not is_taken
    else:
        assert is_taken


def test_response_format_is_named_after_its_type():
    assert response_format(Score).name == "Score"


@pytest.mark.parametrize("answer", [dict[str, int], list[Any], int | None], ids=str)
def test_type_without_named_fields_raises_type_error(answer):
    with pytest.raises(TypeError, match="named fields"):
        response_format(answer)


def test_response_format_is_cached():
    assert response_format(Score) is response_format(Score)
