from typing import Any

import msgspec
import pytest

from infrastructure.ai.forms import Malformed, form_of
from tests.infrastructure.ai.fakes import Score


class Anything(msgspec.Struct):
    any: Any


def test_what_fits_is_decoded():
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
def test_what_does_not_fit_is_complained_about(text, complaint):
    with pytest.raises(Malformed, match=complaint):
        form_of(Score).decode(text)


@pytest.mark.parametrize(("depth", "is_taken"), [(32, True), (33, False), (1_000_000, False)])
def test_what_is_nested_too_deep_is_not_followed(depth, is_taken):
    try:
        form_of(Anything).decode('{"any": ' + "[" * (depth - 1) + "]" * (depth - 1) + "}")
    except Malformed:
        assert not is_taken
    else:
        assert is_taken


@pytest.mark.parametrize("answer", [dict[str, int], list[int], int])
def test_an_answer_has_named_fields(answer):
    with pytest.raises(TypeError, match="named fields"):
        form_of(answer)


def test_a_form_is_made_once():
    assert form_of(Score) is form_of(Score)
