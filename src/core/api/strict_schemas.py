"""OpenAPI schemas as strict as the msgspec decoder.

Litestar omits that a request forbids unknown fields, a minimum of 0, and constraints inside lists; this
plugin takes them from msgspec's own schema. A response contains every field, also one with a default value.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from litestar.openapi.spec import Schema
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition

CONSTRAINTS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "pattern": "pattern",
    "minItems": "min_items",
    "maxItems": "max_items",
}


class StrictStructs(OpenAPISchemaPlugin):
    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        kind = field_definition.annotation
        # The argument of a generic struct is known to Litestar's own plugin alone.
        return isinstance(kind, type) and issubclass(kind, msgspec.Struct)

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: Any) -> Schema:  # noqa: ANN401  Litestar's type is not public
        usual: OpenAPISchemaPlugin = next(
            plugin
            for plugin in schema_creator.plugins
            if plugin is not self and schema_creator.plugin_supports_field(plugin, field_definition)
        )
        schema = usual.to_openapi_schema(field_definition, schema_creator)
        kind = field_definition.annotation
        if not kind.__struct_config__.forbid_unknown_fields:
            if not kind.__struct_config__.omit_defaults:
                schema.required = sorted(schema.properties or ())
            return schema
        schema.additional_properties = False
        (_,), components = msgspec.json.schema_components([kind])
        for name, exact in components[kind.__name__]["properties"].items():
            _constrain((schema.properties or {})[name], exact)
        return schema


def _constrain(schema: object, exact: dict[str, Any]) -> None:
    """A nullable field gets the constraints directly, because JSON Schema does not apply them to null."""
    if not isinstance(schema, Schema):
        return
    for choice in _choices(exact):
        for word, attribute in CONSTRAINTS.items():
            if word in choice and getattr(schema, attribute) is None:
                setattr(schema, attribute, choice[word])
        _constrain(schema.items, choice.get("items", {}))


def _choices(exact: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield exact
    yield from exact.get("anyOf", ())
