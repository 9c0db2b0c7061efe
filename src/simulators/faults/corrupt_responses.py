"""Corrupted responses in each provider's format: pure functions on documents."""

from collections.abc import Callable

from simulators.faults.provider_requests import (
    Value,
    anthropic_error,
    apify_error,
    openai_error,
    plain_error,
    stripe_error,
)

DECLINED = "I'm sorry, but I can't help with that."


ERRORS: dict[str, Callable[[int, str, str], Value]] = {
    "openai": openai_error,
    "anthropic": anthropic_error,
    "apify": apify_error,
    "stripe": stripe_error,
}
# The code that each provider sends when it is overloaded, used for a fault without a code.
DEFAULT_CODES = {
    "openai": "server_error",
    "anthropic": "overloaded_error",
    "apify": "internal-error",
    "stripe": "lock_timeout",
}


def response_provider(path: str) -> str:
    """Returns the provider whose format the response has: behind the gateway, the provider that it called."""
    parts = path.split("/")
    through_gateway = parts[1] == "cloudflare" and len(parts) > 5  # noqa: PLR2004
    return parts[5] if through_gateway else parts[1]


def error_document(path: str, status: int, code: str | None) -> Value:
    provider = response_provider(path)
    build = ERRORS.get(provider, plain_error)
    return build(status, code or DEFAULT_CODES.get(provider, "error"), "Injected fault.")


def _openai_message(document: Value, content: list[Value]) -> Value:
    output = [
        {**item, "content": content} if item["type"] == "message" else item for item in document["output"]
    ]
    return {**document, "output": output}


def refused(path: str, document: Value) -> Value:
    match response_provider(path), document:
        case "openai", {"output": _}:
            return _openai_message(document, [{"type": "refusal", "refusal": DECLINED}])
        case "anthropic", {"content": _}:
            details = {"type": "refusal", "category": None, "explanation": None}
            return {**document, "content": [], "stop_reason": "refusal", "stop_details": details}
        case _:
            return document


def with_wrong_schema(path: str, document: Value) -> Value:
    match response_provider(path), document:
        case "openai", {"output": _}:
            text: Value = {"type": "output_text", "text": '{"unexpected": [true, null]}', "annotations": []}
            return _openai_message(document, [text])
        case "openai", {"data": [*vectors]}:
            return {**document, "data": [{**vector, "embedding": [0.5, 0.5]} for vector in vectors]}
        case "anthropic", {"content": [*blocks]}:
            return {**document, "content": [_block_with_wrong_schema(block) for block in blocks]}
        case "apify", [*items]:
            wrong = {"followersCount": "many", "latestPosts": "none", "private": None}
            return [{**item, **wrong} for item in items]
        case "apify", {"data": _}:
            return {"data": {"id": 7, "status": None}}
        case _:
            return {"unexpected": [True, None]}


def _block_with_wrong_schema(block: Value) -> Value:
    if block["type"] == "tool_use":
        return {**block, "input": {"unexpected": [True, None]}}
    return {**block, "text": '{"unexpected": [true, null]}'}


def duplicated(document: Value) -> Value | None:
    """Returns None when the document contains nothing that can be doubled."""
    match document:
        case [*items]:
            return items + items
        case {"output": [*items]}:
            return {**document, "output": items + items}
        case {"content": [*items]}:
            return {**document, "content": items + items}
        case {"data": [*items]}:
            return {**document, "data": items + items}
        case _:
            return None
