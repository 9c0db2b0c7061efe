"""Values for a JSON schema: of the right shape, with content from a ``Knowledge``."""

import math
import re
from collections.abc import Iterable
from typing import Any, Protocol, cast

import msgspec

from simulators.ai.prompt_facts import plain
from simulators.faults.provider_requests import Document as Schema
from simulators.faults.provider_requests import Value

_SCORES = "score fit confidence match likelihood probability relevance strength priority rating readiness"
_SHARES = "confidence probability likelihood ratio share"
_EVIDENCE = "evidence ids id posts post sources source references reference quotes citations"
_STEPS = (
    "none very_low poor cold no never reject",
    "low weak fair few rarely",
    "medium moderate average mid some sometimes warm maybe neutral partial",
    "high strong good many often yes accept",
    "very_high excellent hot always outstanding",
)

SCORES = frozenset(_SCORES.split())  # a property with such a name is measured, never read from the prompt
SHARES = frozenset(_SHARES.split())  # fractions of 1, unless the schema sets other limits
EVIDENCE = frozenset(_EVIDENCE.split())  # properties that quote the prompt
STEPS = tuple(frozenset(step.split()) for step in _STEPS)  # levels, from low to high
FORMATS = {
    "date": "2026-01-15",
    "date-time": "2026-01-15T12:00:00Z",
    "time": "12:00:00Z",
    "email": "person@example.com",
    "uri": "https://example.com/page",
    "hostname": "example.com",
    "uuid": "6f1c1f0e-54b1-4f0c-9d2b-0a4d0d5a7c11",
}
SAMPLES = (
    *FORMATS.values(),
    "#a1b2c3",
    "a-b-c",
    "example",
    "Example",
    "EX-1",
    "en",
    "en-US",
    "1.0.0",
    "0.5",
)
DEPTH_MAX = 12  # a schema that refers to itself ends here, if it permits an end
ITEMS_DEFAULT = 3
INTEGER_DEFAULT = 100


class ValueSource(Protocol):
    """Source of the values, by the name of their property."""

    def score_of(self, name: str) -> float: ...

    def choice(self, name: str, below: int) -> int: ...

    def number_of(self, name: str) -> float | None: ...

    def text_of(self, name: str) -> str | None: ...

    def ids(self) -> tuple[str, ...]: ...

    def sentence(self, name: str, number: int) -> str: ...


class SchemaValues:
    """One traversal of one schema."""

    def __init__(self, source: ValueSource, root: Schema) -> None:
        self._source = source
        self._root = root

    def value(self, schema: Schema, name: str, number: int, depth: int, draft: Value = None) -> Value:
        """``name`` is the property's name, ``number`` the sum of the indexes in the lists around it. A draft
        of the schema's type is used as far as the schema permits.
        """
        schema = self._resolved(schema, depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return draft if draft in schema["enum"] else self._one_of(schema["enum"], name, number)
        made: Value = None
        match _kind_of(schema):
            case "object":
                made = self._object(schema, number, depth, cast("Schema", draft or {}))
            case "array":
                made = self._array(schema, name, number, depth, draft)
            case "integer" | "number" as kind:
                made = self._number(schema, name, number, is_whole=kind == "integer", draft=draft)
            case "boolean":
                made = self._source.score_of(name) >= 0.5  # noqa: PLR2004
            case "string":
                made = self._string(schema, name, number, draft)
            case _:
                pass
        return made

    def _resolved(self, schema: Schema, depth: int) -> Schema:
        """Resolves references and alternatives to the first that is not null, or to null at ``DEPTH_MAX``."""
        while True:
            if "$ref" in schema:
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                schema = {**self._referred(schema["$ref"]), **rest}
            elif "allOf" in schema:
                parts = [self._resolved(part, depth) for part in schema["allOf"]]
                schema = _merged([{key: value for key, value in schema.items() if key != "allOf"}, *parts])
            elif "anyOf" in schema or "oneOf" in schema:
                options: list[Schema] = schema.get("anyOf") or schema["oneOf"]
                nulls = [option for option in options if option.get("type") == "null"]
                others = [option for option in options if option.get("type") != "null"]
                schema = (nulls or others if depth >= DEPTH_MAX else others or nulls)[0]
            else:
                return schema

    def _referred(self, reference: str) -> Schema:
        found: Any = self._root
        for part in reference.removeprefix("#").strip("/").split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")] if part else found
        return found

    def _one_of(self, members: list[Any], name: str, number: int) -> Value:
        steps = [_step_of(member) for member in members]
        if all(step is not None for step in steps):
            wanted = self._source.score_of(name) * (len(STEPS) - 1)
            return min(zip(steps, members, strict=True), key=lambda pair: abs((pair[0] or 0) - wanted))[1]
        present = [member for member in members if member is not None] or members
        return present[(self._source.choice(name, len(present)) + number) % len(present)]

    def _object(self, schema: Schema, number: int, depth: int, draft: Schema) -> dict[str, Any]:
        properties: dict[str, Schema] = schema.get("properties", {})
        required = set(schema.get("required", ()))
        wanted = [key for key in properties if depth < DEPTH_MAX or key in required]
        return {key: self.value(properties[key], key, number, depth + 1, draft.get(key)) for key in wanted}

    def _array(self, schema: Schema, name: str, before: int, depth: int, draft: Value) -> list[Any]:
        low = schema.get("minItems", 0)
        if isinstance(draft, list | tuple):
            items = cast("list[Value]", draft)[: schema.get("maxItems")]
            return [self.value(schema["items"], name, before, depth + 1, item) for item in items]
        usual = low if depth >= DEPTH_MAX else max(low, ITEMS_DEFAULT)
        count = min(usual, schema.get("maxItems", usual))
        item: Schema = schema.get("items", {"type": "string"})
        ids = self._source.ids()
        if ids and EVIDENCE & set(plain(name).split("_")) and self._is_text(item, depth):
            count = max(low, min(count, len(ids)))
            start = self._source.choice(name, len(ids)) + before
            return [ids[(start + number) % len(ids)] for number in range(count)]
        values = [self.value(item, name, before + number, depth + 1) for number in range(count)]
        return _unique(values) if schema.get("uniqueItems") else values

    def _is_text(self, schema: Schema, depth: int) -> bool:
        schema = self._resolved(schema, depth)
        return _kind_of(schema) == "string" and not {"enum", "const", "pattern", "format"} & schema.keys()

    def _number(self, schema: Schema, name: str, number: int, *, is_whole: bool, draft: Value) -> float:
        words = set(plain(name).split("_"))
        found = None if words & SCORES else self._source.number_of(name)
        low, high = _bounds(schema, is_whole=is_whole)
        if isinstance(draft, int | float):
            value = draft
        elif found is None:
            usual = 1 if words & SHARES and not is_whole else INTEGER_DEFAULT
            start = 0.0 if low == -math.inf else low
            end = start + usual if high == math.inf else high
            value = start + self._source.score_of(name) * (end - start)
        else:
            value = found + number
        step = schema.get("multipleOf", 1 if is_whole else 0.0001)
        whole = round(min(max(value, low), high) / step)
        while whole * step > high:
            whole -= 1
        while whole * step < low:
            whole += 1
        return int(whole * step) if is_whole else round(whole * step, 6)

    def _string(self, schema: Schema, name: str, number: int, draft: Value) -> str:
        ids = self._source.ids()
        if isinstance(draft, str):
            text = draft
        elif ids and EVIDENCE & set(plain(name).split("_")):
            text = ids[(self._source.choice(name, len(ids)) + number) % len(ids)]
        else:
            text = self._source.text_of(name) or self._source.sentence(name, number)
        if "pattern" in schema or "format" in schema:
            return matching_text(schema, [text, *ids])
        while len(text) < schema.get("minLength", 0):
            text = f"{text} {text}"
        return text[: schema.get("maxLength", len(text))]


def _kind_of(schema: Schema) -> str | None:
    kind = schema.get("type")
    if isinstance(kind, list):
        return next((member for member in cast("list[str]", kind) if member != "null"), None)
    return kind or ("object" if "properties" in schema else None)


def _merged(parts: list[Schema]) -> Schema:
    merged: Schema = {}
    for part in parts:
        merged = {
            **merged,
            **part,
            "properties": {**merged.get("properties", {}), **part.get("properties", {})},
            "required": [*merged.get("required", ()), *part.get("required", ())],
        }
    return {name: value for name, value in merged.items() if value or name not in {"properties", "required"}}


def _step_of(member: Value) -> int | None:
    word = re.sub(r"\W+", "_", str(member).lower())
    return next((level for level, words in enumerate(STEPS) if word in words), None)


def _bounds(schema: Schema, *, is_whole: bool) -> tuple[float, float]:
    tiny = 1 if is_whole else 0.0001
    low = max(schema.get("minimum", -math.inf), schema.get("exclusiveMinimum", -math.inf) + tiny)
    high = min(schema.get("maximum", math.inf), schema.get("exclusiveMaximum", math.inf) - tiny)
    return low, high


def _unique(values: list[Any]) -> list[Any]:
    """Returns the values without duplicates."""
    return list({msgspec.json.encode(value): value for value in values}.values())


def matching_text(schema: dict[str, Any], texts: Iterable[str]) -> str:
    """Returns the first of the texts, or of some samples, that matches; ``example`` when none does."""
    if "pattern" not in schema:
        return FORMATS.get(schema["format"], "example")
    pattern = re.compile(schema["pattern"])
    low, high = schema.get("minLength", 0), schema.get("maxLength", 10_000)
    runs = (letter * count for letter in "aA0" for count in range(1, 65))
    candidates = (*texts, *SAMPLES, *runs)
    fitting = (text for text in candidates if low <= len(text) <= high and pattern.search(text))
    return next(fitting, "example")
