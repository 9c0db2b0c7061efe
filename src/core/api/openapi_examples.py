"""Examples of requests and responses, generated from the schemas of the OpenAPI document."""

from collections.abc import Mapping
from typing import Any

from litestar.openapi.spec import OpenAPI, Reference, Schema

from features.analysis.controllers.examples import ANALYSIS_EXAMPLE
from features.runs.controllers.schemas import RUN_EXAMPLE

HAND_WRITTEN: dict[str, Any] = {"RunResponse": RUN_EXAMPLE, "AnalysisResponse": ANALYSIS_EXAMPLE}
UUID_EXAMPLE = "7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11"
FORMATS = {"uuid": UUID_EXAMPLE, "date-time": "2026-11-01T09:30:00Z", "date": "2026-11-01"}

# Values by field name, used where the schema of the field accepts the type of the value.
VALUES: dict[str, Any] = {
    "account_name": "Corner bakery",
    "api_version": "2026-10-28.endive",
    "bio": "Small-batch coffee from the Alps.",
    "body_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "cancels_at": None,
    "credits": 5,
    "currency": "usd",
    "deleted_at": None,
    "description": "Deep analysis",
    "disabled_reason": None,
    "email": "member@example.com",
    "error": None,
    "expires_at": "2026-12-01T09:30:00Z",
    "failing_since": None,
    "followers_count": 48_200,
    "hint": "osl_live_2tYJ5ZQvKqkB7wM0cR9xLd_...",
    "key": "osl_live_<id>_<secret and checksum>",
    "language": "en",
    "last_error": None,
    "method": "GET",
    "model": "gpt-5-mini",
    "name": "Corner bakery",
    "next_cursor": None,
    "operation": "adjustCredits",
    "pack": "small",
    "path": "/v1/credits/balance",
    "plan": "pro",
    "platform": "instagram",
    "poll_url": f"/v1/runs/{UUID_EXAMPLE}",
    "preview_id": "pv_1793525400_0123456789abcdef0123456789abcdef",
    "provider": "openai",
    "reason": "Granted twice by mistake",
    "reference": "ticket:4711",
    "return_url": None,
    "revoked_at": None,
    "role": "admin",
    "route": "/v1/credits/balance",
    "schedule": "*/15 * * * *",
    "secret": "whsec_<the key in base64>",
    "since": "2026-11-01T00:00:00Z",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "title": "Growth",
    "token": "osl_invite_ySh3mXq0b0E6cPq9o6f3pZ2uQ0c5rJ8w1lT4kN7vB2A",
    "transaction_type": "admin_grant",
    "type": "invoice.paid",
    "until": "2026-11-02T00:00:00Z",
    "url": "https://hooks.example.com/oslira",
    "username": "alpine.coffee",
    "usernames": ["alpine.coffee", "@natgeo"],
    "website": "https://alpine-coffee.example",
    "webhook_id": "msg_5b1c9d2e7f3a4b6c8d0e1f2a3b4c5d6e",
}
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "null": (type(None),),
}


class Examples:
    """Generator of example values for the schemas of one document."""

    def __init__(self, document: OpenAPI) -> None:
        self._components: Mapping[str, Schema] = document.components.schemas or {}

    def response(self, schema: Schema | Reference) -> Any:  # noqa: ANN401  any JSON value
        return self._value(schema, "")

    def request(self, schema: Schema | Reference) -> Any:  # noqa: ANN401  any JSON value
        """Contains the required fields, or the first field if all are optional, as in a PATCH."""
        resolved = self._resolved(schema)
        properties = resolved.properties or {}
        names = resolved.required or list(properties)[:1]
        return {name: self._value(properties[name], name) for name in properties if name in names}

    def _resolved(self, schema: Schema | Reference) -> Schema:
        return self._components[_component(schema)] if isinstance(schema, Reference) else schema

    def _value(self, schema: Schema | Reference, name: str) -> Any:  # noqa: ANN401  any JSON value
        if isinstance(schema, Reference) and _component(schema) in HAND_WRITTEN:
            return HAND_WRITTEN[_component(schema)]
        resolved = self._resolved(schema)
        choices = resolved.one_of or resolved.any_of or resolved.all_of or [resolved]
        types = {kind for choice in choices for kind in _types(self._resolved(choice))}
        is_choice = not resolved.enum or VALUES.get(name) in resolved.enum
        if name in VALUES and is_choice and any(_has_type(VALUES[name], kind) for kind in types):
            return VALUES[name]
        return self._plain(resolved, name) if choices == [resolved] else self._value(choices[0], name)

    def _plain(self, schema: Schema, name: str) -> Any:  # noqa: ANN401  any JSON value
        if chosen := schema.examples or schema.enum or (schema.const and [schema.const]):
            return next(iter(chosen))
        match _types(schema)[0]:
            case "object":
                properties = schema.properties or {}
                return {field: self._value(kind, field) for field, kind in properties.items()}
            case "array":
                return [self._value(schema.items, name.removesuffix("s"))] if schema.items else []
            case "integer" | "number":
                return max(schema.minimum or 0, 1)
            case other:
                text = FORMATS.get(str(schema.format and schema.format.value), "text")
                return {"boolean": False, "null": None}.get(other, text)


def _component(reference: Reference) -> str:
    return reference.ref.rpartition("/")[2]


def _types(schema: Schema) -> list[str]:
    if schema.type is None:
        return ["object"]
    return [schema.type] if isinstance(schema.type, str) else [*schema.type]


def _has_type(value: object, kind: str) -> bool:
    return type(value) in TYPES.get(kind, ())
