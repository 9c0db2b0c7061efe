"""Rules of OpenAI's structured output for a schema: every object closed, every property required."""

from collections.abc import Iterator
from typing import cast

from simulators.faults.json_access import Document as Schema
from simulators.faults.json_access import Value


def broken_rule(schema: Schema) -> str | None:
    """Returns the first broken rule, approximately in OpenAI's words, or None."""
    if schema.get("type") != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
    for path, part in _objects(schema, ()):
        where = f"In context={path}, "
        if part.get("additionalProperties") is not False:
            return f"{where}'additionalProperties' is required to be supplied and to be false."
        missing = [name for name in part.get("properties", {}) if name not in part.get("required", ())]
        if missing:
            return (
                f"{where}'required' is required to be supplied and to be an array including every key in"
                f" properties. Missing '{missing[0]}'."
            )
    return None


def _objects(part: Value, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Schema]]:
    if isinstance(part, list):
        for number, inner in enumerate(cast("list[Value]", part)):
            yield from _objects(inner, (*path, str(number)))
    if not isinstance(part, dict):
        return
    schema = cast("Schema", part)
    if schema.get("type") == "object" or "properties" in schema:
        yield path, schema
    for name, inner in schema.items():
        if name not in {"enum", "const", "default", "required"}:
            yield from _objects(inner, (*path, name))
