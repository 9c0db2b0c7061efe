"""Schemas as strict as the decoder: Litestar does not say of a struct that it refuses unknown fields."""

from typing import Any

import msgspec
from litestar.openapi.spec import Schema
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition


class StrictStructs(OpenAPISchemaPlugin):
    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        kind = field_definition.annotation
        return (
            isinstance(kind, type)
            and issubclass(kind, msgspec.Struct)
            and kind.__struct_config__.forbid_unknown_fields
        )

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: Any) -> Schema:  # noqa: ANN401  Litestar's own, not public
        usual: OpenAPISchemaPlugin = next(
            plugin
            for plugin in schema_creator.plugins
            if plugin is not self and schema_creator.plugin_supports_field(plugin, field_definition)
        )
        schema = usual.to_openapi_schema(field_definition, schema_creator)
        schema.additional_properties = False
        return schema
