"""Parameters and schemas that OpenAI's models reject."""

import re
from collections.abc import Iterator
from typing import cast

from simulators.faults.provider_requests import Document, RequestRejected, Value, part_of
from simulators.faults.provider_requests import Document as Schema

THINKING = re.compile(
    r"(gpt-[5-9](\.\d)?(-mini|-nano|-pro|-luna|-terra|-sol)?|o3(-mini)?|o4-mini)(-\d{4}-\d\d-\d\d)?"
)
NEWER = re.compile(r"gpt-(5\.|[6-9])")
PLAIN = re.compile(r"(gpt-4o|gpt-4o-mini|gpt-4\.1|gpt-4\.1-mini|gpt-4\.1-nano)(-\d{4}-\d\d-\d\d)?")
DIMENSIONS = {"text-embedding-3-small": 1_536, "text-embedding-3-large": 3_072}
LISTED = ("gpt-4o-mini", "gpt-4o", "gpt-5", "gpt-5-mini", "gpt-5-nano", *DIMENSIONS)
EFFORT_TOKENS = {"none": 0, "minimal": 0, "low": 64, "medium": 320, "high": 1_280}
EFFORT_DEFAULT = "medium"
OLDER_EFFORTS = ("minimal", "low", "medium", "high")
NEWER_EFFORTS = ("none", "low", "medium", "high", "xhigh")


def unknown_model(model: object) -> RequestRejected:
    message = f"The model `{model}` does not exist or you do not have access to it."
    return RequestRejected(404, "model_not_found", message)


def reasoning_tokens(request: Document) -> int:
    """Returns the number of reasoning tokens. Rejects parameters that the model does not accept."""
    model = str(request.get("model"))
    if PLAIN.fullmatch(model):
        if request.get("reasoning"):
            raise _unsupported("reasoning.effort")
        return 0
    if not THINKING.fullmatch(model):
        raise unknown_model(model)
    for name in ("temperature", "top_p"):
        if request.get(name) is not None:
            raise _unsupported(name)
    effort = str(part_of(request, "reasoning").get("effort") or EFFORT_DEFAULT)
    efforts = NEWER_EFFORTS if NEWER.match(model) else OLDER_EFFORTS
    if effort not in efforts:
        supported = ", ".join(f"'{value}'" for value in efforts)
        message = f"Unsupported value: '{effort}' is not supported with '{model}'. Supported: {supported}."
        raise RequestRejected(400, "unsupported_value", message, param="reasoning.effort")
    return EFFORT_TOKENS.get(effort, 2_560)


def _unsupported(param: str) -> RequestRejected:
    message = f"Unsupported parameter: '{param}' is not supported with this model."
    return RequestRejected(400, "unsupported_parameter", message, param=param)


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
