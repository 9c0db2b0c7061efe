"""Provider-specific JSON Schemas: each uses only supported keywords, and every encoded value of the type
validates against it.
"""

import json
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

import msgspec
import pytest
from anthropic import transform_schema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import Meta

from infrastructure.ai.response_format import for_anthropic, for_openai, schema_of

T = TypeVar("T")
Score = Annotated[int, Meta(ge=0, le=100, description="0 to 100")]


class Plain(msgspec.Struct):
    """A verdict."""

    score: Score
    share: Annotated[float, Meta(gt=0, lt=1)]
    is_warm: bool
    tone: Literal["warm", "cold"]


class Limited(msgspec.Struct):
    name: Annotated[str, Meta(min_length=1, max_length=20, title="Name")]
    code: Annotated[str, Meta(pattern="^[a-z]+$")]
    marks: Annotated[list[Score], Meta(min_length=2, max_length=4)]
    words: Annotated[tuple[str, ...], Meta(min_length=1)]
    ids: frozenset[int]


class Optional(msgspec.Struct):
    needed: str
    note: str | None = None
    count: int = 3
    mode: Literal["a", "b", None] = None  # noqa: PYI061  tests msgspec's schema for a literal with None
    mixed: Literal[1, "one"] = 1
    seen: list[str] = []


class Inner(msgspec.Struct):
    points: list[Plain]
    note: Annotated[Plain | None, Meta(description="the best of them")] = None


class Nested(msgspec.Struct):
    first: Inner
    best: Annotated[Plain, Meta(description="the best", title="Best")]
    rest: tuple[Inner, ...] = ()


class Cat(msgspec.Struct, tag="cat"):
    lives: int = 9


class Dog(msgspec.Struct, tag="dog", forbid_unknown_fields=True):
    name: str


class Tagged(msgspec.Struct):
    pet: Cat | Dog
    pets: list[Cat | Dog] = []
    other: Cat | Dog | None = None


class Times(msgspec.Struct):
    id: UUID
    day: date
    at: Annotated[datetime, Meta(tz=True)]
    picture: bytes = b""


class Page(msgspec.Struct, Generic[T]):
    items: list[T]


@dataclass
class Classic:
    name: str
    count: int = 1


class Tree(msgspec.Struct):
    name: str
    children: list["Tree"] = []


class Mapped(msgspec.Struct):
    counts: dict[str, int]


class Anything(msgspec.Struct):
    value: Any


class Paired(msgspec.Struct):
    pair: tuple[int, str]


class Listed(msgspec.Struct):
    items: list


CLOSED = [Plain, Limited, Optional, Nested, Tagged, Times, Page[Plain], Classic]
OPEN = [Mapped, Anything, Paired, Listed]


def nodes(schema):
    """Every subschema of a schema."""
    yield schema
    for key in ("anyOf", "prefixItems"):
        for variant in schema.get(key, []):
            yield from nodes(variant)
    if isinstance(schema.get("items"), dict):
        yield from nodes(schema["items"])
    for key in ("properties", "$defs"):
        for form in schema.get(key, {}).values():
            yield from nodes(form)


OPENAI_KEYS = {
    *("type", "enum", "const", "anyOf", "items", "properties", "required", "additionalProperties", "$ref"),
    *("$defs", "description", "title", "format", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minItems", "maxItems"),
}


@pytest.mark.parametrize("answer", [*CLOSED, Tree], ids=str)
def test_openai_schema_uses_the_strict_subset(answer):
    schema, is_strict = for_openai(schema_of(answer)[1])

    assert is_strict
    assert schema["type"] == "object"
    for node in nodes(schema):
        assert node.keys() <= OPENAI_KEYS
        assert node.keys() & {"type", "anyOf", "$ref"}
        if "$ref" in node:
            assert len(node) == 1
        if "properties" in node:
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])


@pytest.mark.parametrize("answer", CLOSED, ids=str)
def test_claude_schema_equals_the_sdk_transformation(answer):
    schema = for_anthropic(schema_of(answer)[1])

    assert schema["type"] == "object"
    assert transform_schema(schema) == schema


@pytest.mark.parametrize("answer", OPEN, ids=str)
def test_open_schema_is_not_strict_for_openai_and_unsupported_for_claude(answer):
    _, plain = schema_of(answer)

    assert for_openai(plain) == (plain, False)
    assert for_anthropic(plain) is None


def test_recursive_schema_is_unsupported_for_claude():
    assert for_anthropic(schema_of(Tree)[1]) is None


@pytest.mark.parametrize("answer", [int, list[Plain], dict[str, int], Cat | Dog, Plain | None], ids=str)
def test_type_without_named_fields_raises_type_error(answer):
    with pytest.raises(TypeError):
        schema_of(answer)


def test_generic_type_has_a_valid_name():
    name, schema = schema_of(Page[Plain])

    assert name.replace("_", "").replace("-", "").isalnum()
    assert schema["$defs"].keys() == {"Plain"}  # without unused definitions


@pytest.mark.parametrize("make", [lambda schema: for_openai(schema)[0], for_anthropic])
def test_unsupported_constraints_become_part_of_the_description(make):
    properties = make(schema_of(Limited)[1])["properties"]

    assert properties["name"]["description"] == "(maxLength: 20, minLength: 1)"
    assert "minLength" not in properties["name"]
    assert "^[a-z]+$" in properties["code"]["description"]


def test_description_is_kept_before_the_constraints():
    schema = for_anthropic(schema_of(Plain)[1])

    assert schema["description"] == "A verdict."
    assert schema["properties"]["score"]["description"] == "0 to 100 (minimum: 0, maximum: 100)"


def test_description_of_a_reference_is_kept():
    schema, _ = for_openai(schema_of(Nested)[1])

    best = schema["properties"]["best"]
    assert (best["description"], best["title"]) == ("the best", "Best")
    assert best["anyOf"] == [{"$ref": "#/$defs/Plain"}]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
@pytest.mark.parametrize("answer", [*CLOSED, Tree, *OPEN], ids=str)
def test_every_value_of_the_type_validates_against_the_sent_schema(answer, data):
    _, plain = schema_of(answer)
    value = data.draw(values(plain, plain))
    msgspec.json.decode(json.dumps(value), type=answer)  # it is valid for the type

    for schema in filter(None, (for_openai(plain)[0], for_anthropic(plain))):
        Draft202012Validator(schema).validate(value)


def values(node, root):
    """JSON values that fit the schema of a type, with all fields, as msgspec encodes them."""
    if "$ref" in node:
        return st.deferred(lambda: values(root["$defs"][node["$ref"].rsplit("/")[-1]], root))
    if "anyOf" in node:
        return st.one_of([values(variant, root) for variant in node["anyOf"]])
    if "enum" in node:
        return st.sampled_from(node["enum"])
    makers = {
        "object": _objects,
        "array": _arrays,
        "string": _strings,
        "integer": lambda node, _: st.integers(node.get("minimum", -(2**60)), node.get("maximum", 2**60)),
        "number": lambda *_: st.floats(0.01, 0.99),
        "boolean": lambda *_: st.booleans(),
        "null": lambda *_: st.none(),
    }
    return makers[node["type"]](node, root) if "type" in node else st.none() | st.integers()


def _objects(node, root):
    if "properties" not in node:
        return st.dictionaries(st.text(), values(node["additionalProperties"], root), max_size=3)
    return st.fixed_dictionaries({name: values(form, root) for name, form in node["properties"].items()})


def _arrays(node, root):
    if "prefixItems" in node:
        return st.tuples(*(values(form, root) for form in node["prefixItems"])).map(list)
    fewest = node.get("minItems", 0)
    item = values(node["items"], root) if "items" in node else st.integers()
    return st.lists(item, min_size=fewest, max_size=node.get("maxItems", fewest + 2))


def _strings(node, _):
    formats = {
        "uuid": st.uuids().map(str),
        "date": st.dates().map(str),
        "date-time": st.datetimes().map(lambda at: f"{at.isoformat()}Z"),
    }
    if "contentEncoding" in node:
        return st.just("AAAA")
    if "pattern" in node:
        return st.from_regex(node["pattern"].replace("$", r"\Z"))
    return formats.get(
        node.get("format"), st.text(min_size=node.get("minLength", 0), max_size=node.get("maxLength", 20))
    )
