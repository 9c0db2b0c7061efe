"""Output schemas for models: closed and bounded."""

import msgspec
import pytest

from features.analysis.domain.prompting.model_outputs import LightOutput, OutreachOutput
from features.analysis.domain.prompting.prompts import FORMS
from tests.unit.features.analysis.examples import LIGHT, OUTREACH

ALL = list(dict.fromkeys(form for forms in FORMS.values() for _, form in forms.values()))
TEXT_BYTES_MAX = 4_000


def nodes(schema):
    yield schema
    for key in ("properties", "$defs"):
        for part in schema.get(key, {}).values():
            yield from nodes(part)
    if "items" in schema:
        yield from nodes(schema["items"])


@pytest.mark.parametrize("form", ALL, ids=lambda form: form.__name__)
def test_every_field_is_required_and_every_size_is_bounded(form):
    for node in nodes(msgspec.json.schema(form)):
        match node.get("type"):
            case "object":
                assert node["required"] == list(node["properties"])
            case "array":
                assert node["maxItems"] <= 12
            case "string":
                assert node["maxLength"] <= TEXT_BYTES_MAX
            case "integer" | "number":
                assert node["minimum"] == 0
                assert node["maximum"] in {1, 100}
            case _:
                assert node.keys() & {"$ref", "enum"}


def test_schemas_have_no_field_for_addresses():
    names = {
        name
        for form in ALL
        for node in nodes(msgspec.json.schema(form))
        for name in node.get("properties", {})
    }

    assert not {name for name in names if {"url", "link", "email", "handle", "action"} & set(name.split("_"))}


@pytest.mark.parametrize(
    ("form", "field", "value"),
    [
        (LightOutput, "overall", 101),
        (LightOutput, "niche_fit", -1),
        (LightOutput, "confidence", 1.5),
        (LightOutput, "overall", "90"),
        (LightOutput, "summary", None),
        (LightOutput, "reasons", [{"effect": "maybe", "text": "", "evidence": []}]),
        (OutreachOutput, "messages", []),
        (OutreachOutput, "language", "evil.example"),
    ],
)
def test_output_outside_its_bounds_is_rejected(form, field, value):
    filled = msgspec.to_builtins(LIGHT if form is LightOutput else OUTREACH)

    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(filled)), form)
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.json.decode(msgspec.json.encode({**filled, field: value}), type=form)
