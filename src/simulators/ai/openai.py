"""Simulated OpenAI API, as far as we use it: responses with structured output, embeddings, models."""

import array
import base64
import time
import uuid
from typing import Any

import msgspec
from litestar import Response, Router, get, post
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler

from simulators.ai.completions import Completions
from simulators.ai.embeddings import embed
from simulators.ai.openai_rules import DIMENSIONS, LISTED, broken_rule, reasoning_tokens, unknown_model
from simulators.ai.prompt_cache import BYTES_PER_TOKEN, tokens_of
from simulators.faults.provider_requests import (
    AnyRequest,
    Document,
    RequestRejected,
    Value,
    document_of,
    error_handlers,
    list_of,
    openai_error,
    part_of,
)

PATH = "/openai/v1"
CACHE_S = 600.0
INPUTS_MAX = 2_048


def _key_of(request: ASGIConnection[Any, Any, Any, Any]) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer").strip()


def _has_key(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    if not _key_of(connection):
        raise RequestRejected(401, "invalid_api_key", "You didn't provide an API key.")


def _texts(content: Value) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [str(part.get("text", "")) for part in content or ()]


def _prompt(request: Document) -> tuple[list[str], list[str]]:
    """Returns the part that repeats between requests, and the question of this request."""
    given = request.get("input")
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else list_of(request, "input")
    cached_prefix = _texts(request["instructions"]) if request.get("instructions") else []
    user_message: list[str] = []
    for message in messages:
        texts = _texts(message.get("content"))
        (cached_prefix if message.get("role") in {"system", "developer"} else user_message).extend(texts)
    if not cached_prefix and len(user_message) > 1:
        return user_message[:-1], user_message[-1:]
    return cached_prefix, user_message


def _schema(request: Document) -> Document | None:
    wanted = part_of(part_of(request, "text"), "format")
    if wanted.get("type") != "json_schema":
        return None
    schema, name = wanted.get("schema"), wanted.get("name")
    if not schema or not name:
        raise RequestRejected(
            400, "missing_required_parameter", "Missing required parameter.", param="text.format"
        )
    rule = broken_rule(schema) if wanted.get("strict") else None
    if rule:
        message = f"Invalid schema for response_format '{name}': {rule}"
        raise RequestRejected(400, "invalid_json_schema", message, param="text.format.schema")
    return schema


@post("/responses", status_code=200)
async def create_response(request: AnyRequest, state: State) -> Response[Document]:
    body = await document_of(request, "invalid_json")
    thinking, schema = reasoning_tokens(body), _schema(body)
    if body.get("stream"):
        raise RequestRejected(400, "unsupported_value", "The simulator does not stream.", param="stream")
    cached_prefix, user_message = _prompt(body)
    if not user_message:
        raise RequestRejected(
            400, "missing_required_parameter", "Missing required parameter: 'input'.", param="input"
        )
    completions = Completions(cached_prefix, "\n".join(user_message))
    text = completions.text() if schema is None else msgspec.json.encode(completions.value(schema)).decode()
    prompt = "\n".join(
        [msgspec.json.encode(schema).decode() if schema else "", *cached_prefix, *user_message]
    )
    owner = f"openai {_key_of(request)} {body['model']} {body.get('prompt_cache_key')}"
    cached = state.prompt_cache.tokens_cached(owner, prompt, lifetime_s=CACHE_S)
    return _json_response(_response(body, text, thinking, tokens_in=tokens_of(prompt), tokens_cached=cached))


def _json_response(content: Document) -> Response[Document]:
    return Response(content, status_code=200, headers={"x-request-id": f"req_{uuid.uuid4().hex}"})


def _response(body: Document, text: str, thinking: int, *, tokens_in: int, tokens_cached: int) -> Document:
    limit: int | None = body.get("max_output_tokens")
    thinking = min(thinking, limit // 2) if limit else thinking
    is_cut = limit is not None and tokens_of(text) + thinking > limit
    if limit is not None and is_cut:
        text = text.encode()[: (limit - thinking) * BYTES_PER_TOKEN].decode("utf-8", "ignore")
    status = "incomplete" if is_cut else "completed"
    return {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "instructions": body.get("instructions"),
        "max_output_tokens": limit,
        "metadata": body.get("metadata") or {},
        "model": body["model"],
        "output": _output(text, status, has_reasoning=thinking > 0),
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": body.get("prompt_cache_key"),
        "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
        "service_tier": "default",
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": body.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": _usage(tokens_in, tokens_cached, tokens_of(text) + thinking, thinking),
        "user": None,
    }


def _output(text: str, status: str, *, has_reasoning: bool) -> list[Document]:
    message: Document = {
        "type": "message",
        "id": f"msg_{uuid.uuid4().hex}",
        "status": status,
        "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
    }
    reasoning: Document = {"type": "reasoning", "id": f"rs_{uuid.uuid4().hex}", "summary": []}
    return [reasoning, message] if has_reasoning else [message]


def _usage(tokens_in: int, tokens_cached: int, tokens_out: int, tokens_reasoning: int) -> Document:
    return {
        "input_tokens": tokens_in,
        "input_tokens_details": {"cached_tokens": tokens_cached, "cache_write_tokens": 0},
        "output_tokens": tokens_out,
        "output_tokens_details": {"reasoning_tokens": tokens_reasoning},
        "total_tokens": tokens_in + tokens_out,
    }


@post("/embeddings", status_code=200)
async def create_embeddings(request: AnyRequest) -> Response[Document]:
    body = await document_of(request, "invalid_json")
    model = body.get("model")
    if model not in DIMENSIONS:
        raise unknown_model(model)
    given = body.get("input")
    texts = [given] if isinstance(given, str) else list_of(body, "input")
    if not texts or len(texts) > INPUTS_MAX or not all(isinstance(text, str) and text for text in texts):
        raise RequestRejected(400, "invalid_value", "'$.input' is invalid.", param="input")
    dimensions = body.get("dimensions") or DIMENSIONS[model]
    if not 1 <= dimensions <= DIMENSIONS[model]:
        raise RequestRejected(400, "invalid_value", "Invalid value for 'dimensions'.", param="dimensions")
    is_packed = body.get("encoding_format") == "base64"
    data: list[Document] = []
    for index, text in enumerate(texts):
        vector = embed(text, dimensions)
        packed = base64.b64encode(array.array("f", vector).tobytes()).decode() if is_packed else vector
        data.append({"object": "embedding", "index": index, "embedding": packed})
    tokens = sum(map(tokens_of, texts))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return _json_response({"object": "list", "data": data, "model": model, "usage": usage})


@get("/models", sync_to_thread=False)
def list_models() -> Document:
    models = [
        {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "system"} for name in LISTED
    ]
    return {"object": "list", "data": models}


def _error_document(error: RequestRejected) -> Document:
    return openai_error(error.status, error.code, error.message, error.param)


def openai_router() -> Router:
    return Router(
        PATH,
        route_handlers=[create_response, create_embeddings, list_models],
        guards=[_has_key],
        exception_handlers=error_handlers(_error_document),
    )
