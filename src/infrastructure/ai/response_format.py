"""Response format: JSON Schema of a response type, its variants for each provider, and a validating decoder.

Constraints that a provider does not support become part of the description; msgspec validates them anyway.
"""

import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar, cast

import msgspec

from shared.middleware.json_depth import depth_exceeds

T = TypeVar("T")
Schema = dict[str, Any]

COMPLETION_BYTES_MAX = 1_000_000
COMPLETION_DEPTH_MAX = 32
FORMATS_MAX = 256
DEFINITIONS = "#/$defs/"
NAME_LENGTH_MAX = 64

_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_SHAPE = frozenset({"type", "enum", "const", "anyOf", "items", "properties", "description", "title", "$ref"})
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
# Not useful for a model: defaults that msgspec fills in, and the key that distinguishes variants.
_OMITTED = frozenset({"default", "discriminator", "required", "additionalProperties", "$defs"})
_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class Malformed(ValueError):
    """Validation error; its text is sent to the model for the repair."""


class ResponseFormat(Generic[T]):
    def __init__(self, response_type: type[T]) -> None:
        self.name, self.schema = schema_of(response_type)
        self.schema_bytes = msgspec.json.encode(self.schema, order="deterministic")
        self._decoder = msgspec.json.Decoder(response_type)

    @cached_property
    def openai(self) -> tuple[msgspec.Raw, bool]:
        """Encoded schema, and whether it may be strict."""
        schema, is_strict = for_openai(self.schema)
        return msgspec.Raw(msgspec.json.encode(schema)), is_strict

    @cached_property
    def anthropic(self) -> msgspec.Raw | None:
        schema = for_anthropic(self.schema)
        return None if schema is None else msgspec.Raw(msgspec.json.encode(schema))

    def decode(self, text: str) -> T:
        try:
            body = text.encode()
            if len(body) > COMPLETION_BYTES_MAX:
                raise Malformed(f"The response is longer than {COMPLETION_BYTES_MAX} bytes.")
            if depth_exceeds(body, COMPLETION_DEPTH_MAX):
                raise Malformed(f"The response is nested deeper than {COMPLETION_DEPTH_MAX} levels.")
            return self._decoder.decode(body)
        except msgspec.ValidationError as error:
            raise Malformed(f"The response does not fit the schema: {error}") from None
        except (msgspec.DecodeError, UnicodeError):
            raise Malformed("The response is not one JSON document.") from None


@lru_cache(maxsize=FORMATS_MAX)
def _response_format(response_type: type[Any]) -> ResponseFormat[Any]:
    return ResponseFormat(response_type)


def response_format(response_type: type[T]) -> ResponseFormat[T]:
    return cast("ResponseFormat[T]", _response_format(response_type))


def schema_of(response_type: type) -> tuple[str, Schema]:
    """Name and schema. Raises TypeError for a type that is not a struct, a typed dictionary or a dataclass,
    because no provider supports it.
    """
    (root,), definitions = msgspec.json.schema_components(
        (response_type,), ref_template=DEFINITIONS + "{name}"
    )
    if "$ref" in root:
        root = definitions[root["$ref"].removeprefix(DEFINITIONS)]
    if root.get("type") != "object" or "properties" not in root:
        raise TypeError(f"{response_type} is not an object with named fields")
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", response_type.__name__)[:NAME_LENGTH_MAX]
    used = _definitions_used(root, definitions)
    return name, root | ({"$defs": used} if used else {})


def for_openai(schema: Schema) -> tuple[Schema, bool]:
    """The second value states whether it may be strict: free-form dictionaries and tuples may not."""
    if not _is_closed(schema):
        return schema, False
    return _each(schema, _openai_node), True


def for_anthropic(schema: Schema) -> Schema | None:
    """None when the schema cannot be an output format: a free-form dictionary, a tuple, or a recursive
    type.
    """
    if not _is_closed(schema) or _is_recursive(schema):
        return None
    return _each(schema, _anthropic_node)


def _each(schema: Schema, node_of: Callable[[Schema], Schema]) -> Schema:
    rewritten = _rewritten(schema, node_of)
    definitions = {name: _rewritten(form, node_of) for name, form in schema.get("$defs", {}).items()}
    return rewritten | ({"$defs": definitions} if definitions else {})


def _rewritten(node: Schema, node_of: Callable[[Schema], Schema]) -> Schema:
    node = {"anyOf" if key == "oneOf" else key: value for key, value in node.items()}
    if "$ref" in node and node.keys() & {"description", "title"}:
        # A reference may have no sibling keys, so it is wrapped in anyOf.
        node["anyOf"] = [{"$ref": node.pop("$ref")}]
    new = node_of(node)
    if "anyOf" in new:
        new["anyOf"] = [_rewritten(variant, node_of) for variant in new["anyOf"]]
    if "items" in new:
        new["items"] = _rewritten(new["items"], node_of)
    if "properties" in new:
        new["properties"] = {name: _rewritten(form, node_of) for name, form in new["properties"].items()}
    return new


def _openai_node(node: Schema) -> Schema:
    """Strict mode requires every property. A property with a default keeps its type, so the model must return
    the value.
    """
    new = _supported(node, _SHAPE | _NUMBERS | {"minItems", "maxItems"}, _FORMATS)
    if "enum" in new and "type" not in new:
        kinds = list(dict.fromkeys(_JSON_TYPES[type(value)] for value in new["enum"]))
        new["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "properties" in new:
        new |= {"required": list(new["properties"]), "additionalProperties": False}
    return new


def _anthropic_node(node: Schema) -> Schema:
    """Properties with a default are optional."""
    few = frozenset({"minItems"} if node.get("minItems") in {0, 1} else ())
    new = _supported(node, _SHAPE | few, _FORMATS | {"uri"})
    if "properties" in new:
        new |= {"required": node.get("required", []), "additionalProperties": False}
    return new


def _supported(node: Schema, supported: frozenset[str], formats: frozenset[str]) -> Schema:
    supported |= {"format"} if node.get("format") in formats else frozenset()
    new = {key: value for key, value in node.items() if key in supported}
    described = [f"{key}: {value}" for key, value in node.items() if key not in supported | _OMITTED]
    if described:
        new["description"] = " ".join([*filter(None, [node.get("description")]), f"({', '.join(described)})"])
    return new


def _nodes(value: object) -> Iterator[Schema]:
    """Every schema nested in this one, including itself."""
    if isinstance(value, dict):
        node = cast("Schema", value)
        yield node
        for key in ("anyOf", "oneOf"):
            for variant in node.get(key, ()):
                yield from _nodes(variant)
        yield from _nodes(node.get("items"))
        for key in ("properties", "$defs"):
            for form in node.get(key, {}).values():
                yield from _nodes(form)


def _is_closed(schema: Schema) -> bool:
    return all(map(_is_node_closed, _nodes(schema)))


def _is_node_closed(node: Schema) -> bool:
    if "prefixItems" in node or not node.keys() & {"type", "enum", "const", "anyOf", "oneOf", "$ref"}:
        return False
    match node.get("type"):
        case "object":
            return "properties" in node and not isinstance(node.get("additionalProperties"), dict)
        case "array":
            return "items" in node
        case _:
            return True


def _references(schema: Schema) -> set[str]:
    return {node["$ref"].removeprefix(DEFINITIONS) for node in _nodes(schema) if "$ref" in node}


def _definitions_used(root: Schema, definitions: dict[str, Schema]) -> dict[str, Schema]:
    used: dict[str, Schema] = {}
    waiting = _references(root)
    while waiting:
        name = waiting.pop()
        used[name] = definitions[name]
        waiting |= _references(definitions[name]) - used.keys()
    return {name: used[name] for name in sorted(used)}


def _is_recursive(schema: Schema) -> bool:
    definitions = schema.get("$defs", {})
    return any(name in _definitions_used(form, definitions) for name, form in definitions.items())
