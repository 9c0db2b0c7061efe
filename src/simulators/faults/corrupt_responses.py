"""Error responses in each provider's format, and corrupted responses: pure functions on documents."""

from collections.abc import Callable

from simulators.faults.json_access import Value

DECLINED = "I'm sorry, but I can't help with that."


def openai_error(status: int, code: str, message: str, param: str | None = None) -> Value:
    kinds = {401: "authentication_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")  # noqa: PLR2004
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def anthropic_error(_: int, code: str, message: str) -> Value:
    error = {"type": code, "message": message}
    return {"type": "error", "error": error, "request_id": "req_simulated"}


def apify_error(_: int, code: str, message: str) -> Value:
    return {"error": {"type": code, "message": message}}


def stripe_error(status: int, code: str, message: str, param: str | None = None) -> Value:
    kinds = {402: "card_error"}
    kind = kinds.get(status, "api_error" if status >= 500 else "invalid_request_error")  # noqa: PLR2004
    error = {"message": message, "type": "idempotency_error" if code == "idempotency_error" else kind}
    if kind == "card_error":
        error["decline_code"] = "generic_decline"
    return {"error": {**error, "code": code, "param": param}}


def plain_error(_: int, code: str, message: str) -> Value:
    return {"code": code, "message": message}


ERRORS: dict[str, Callable[[int, str, str], Value]] = {
    "openai": openai_error,
    "anthropic": anthropic_error,
    "apify": apify_error,
    "stripe": stripe_error,
}
# The code that each provider sends when it is overloaded, used for a fault without a code.
USUAL_CODES = {
    "openai": "server_error",
    "anthropic": "overloaded_error",
    "apify": "internal-error",
    "stripe": "lock_timeout",
}


def speaker_of(path: str) -> str:
    """Returns the provider whose format the response has: behind the gateway, the provider that it called."""
    parts = path.split("/")
    through_gateway = parts[1] == "cloudflare" and len(parts) > 5  # noqa: PLR2004
    return parts[5] if through_gateway else parts[1]


def error_document(path: str, status: int, code: str | None) -> Value:
    speaker = speaker_of(path)
    build = ERRORS.get(speaker, plain_error)
    return build(status, code or USUAL_CODES.get(speaker, "error"), "A fault was asked for.")


def _openai_message(document: Value, content: list[Value]) -> Value:
    output = [
        {**item, "content": content} if item["type"] == "message" else item for item in document["output"]
    ]
    return {**document, "output": output}


def declined(path: str, document: Value) -> Value:
    match speaker_of(path), document:
        case "openai", {"output": _}:
            return _openai_message(document, [{"type": "refusal", "refusal": DECLINED}])
        case "anthropic", {"content": _}:
            details = {"type": "refusal", "category": None, "explanation": None}
            return {**document, "content": [], "stop_reason": "refusal", "stop_details": details}
        case _:
            return document


def misshapen(path: str, document: Value) -> Value:
    match speaker_of(path), document:
        case "openai", {"output": _}:
            text: Value = {"type": "output_text", "text": '{"unexpected": [true, null]}', "annotations": []}
            return _openai_message(document, [text])
        case "openai", {"data": [*vectors]}:
            return {**document, "data": [{**vector, "embedding": [0.5, 0.5]} for vector in vectors]}
        case "anthropic", {"content": [*blocks]}:
            return {**document, "content": [_misshapen_block(block) for block in blocks]}
        case "apify", [*items]:
            wrong = {"followersCount": "many", "latestPosts": "none", "private": None}
            return [{**item, **wrong} for item in items]
        case "apify", {"data": _}:
            return {"data": {"id": 7, "status": None}}
        case _:
            return {"unexpected": [True, None]}


def _misshapen_block(block: Value) -> Value:
    if block["type"] == "tool_use":
        return {**block, "input": {"unexpected": [True, None]}}
    return {**block, "text": '{"unexpected": [true, null]}'}


def doubled(document: Value) -> Value | None:
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
