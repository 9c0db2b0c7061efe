"""Simulated Anthropic Messages API: structured output by format or by a forced tool, and prompt caching."""

import hashlib
import re
import uuid
from typing import Any

import msgspec
from litestar import Response, Router, post
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.handlers import BaseRouteHandler

from simulators.ai.completions import Completions
from simulators.ai.prompt_cache import BYTES_PER_TOKEN, TOKENS_MIN, PromptCache, tokens_of
from simulators.faults.provider_requests import (
    AnyRequest,
    Document,
    RequestRejected,
    Value,
    anthropic_error,
    document_of,
    error_handlers,
    list_of,
    part_of,
)

PATH = "/anthropic/v1"
MODELS = re.compile(
    r"claude-(opus|sonnet|haiku|fable|mythos)-\d(-\d)?(-\d{8})?|claude-3-[57]-(sonnet|haiku)-(\d{8}|latest)"
)
REFUSED = ("temperature", "top_p", "top_k")
EFFORT_TOKENS = {"low": 32, "medium": 128, "high": 512, "xhigh": 1_024, "max": 2_048}
LIFETIMES_S = {"5m": 300.0, "1h": 3_600.0}
BREAKPOINTS_MAX = 4
INVALID = "invalid_request_error"


def _key_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Reads the key from either header: Anthropic's own client sends it as a bearer token since version 2."""
    bearer = connection.headers.get("authorization", "").removeprefix("Bearer").strip()
    return connection.headers.get("x-api-key", "") or bearer


def _has_key(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    if not _key_of(connection):
        raise RequestRejected(401, "authentication_error", "x-api-key header is required")
    if not connection.headers.get("anthropic-version"):
        raise RequestRejected(400, INVALID, "anthropic-version: header is required")


def _check(body: Document) -> None:
    model = body.get("model", "")
    if not MODELS.fullmatch(str(model)):
        raise RequestRejected(404, "not_found_error", f"model: {model}")
    for name in ("max_tokens", "messages"):
        if not body.get(name):
            raise RequestRejected(400, INVALID, f"{name}: Field required")
    for name in REFUSED:
        if body.get(name) is not None:
            raise RequestRejected(400, INVALID, f"{name}: `{name}` is not supported on this model.")
    if body.get("stream"):
        raise RequestRejected(400, INVALID, "stream: the simulator does not stream.")


def _blocks(content: Value) -> list[Document]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _tool(body: Document) -> Document | None:
    """Returns the tool that the model must call, or None when the request forces none."""
    choice, tools = part_of(body, "tool_choice"), list_of(body, "tools")
    if choice.get("type") == "any":
        return tools[0]
    if choice.get("type") != "tool":
        return None
    found = next((tool for tool in tools if tool["name"] == choice.get("name")), None)
    if found is None:
        raise RequestRejected(
            400, INVALID, f"tool_choice: Tool '{choice.get('name')}' not found in provided tools"
        )
    return found


def _prompt(body: Document) -> tuple[list[str], list[str]]:
    cached_prefix = [str(block.get("text", "")) for block in _blocks(body.get("system"))]
    turns = [block for message in list_of(body, "messages") for block in _blocks(message.get("content"))]
    # Blocks with cache_control are the part of the prompt that repeats between requests.
    cached_prefix += [str(block.get("text", "")) for block in turns if block.get("cache_control")]
    user_message = [str(block.get("text", "")) for block in turns if not block.get("cache_control")]
    return (cached_prefix, user_message) if user_message else ([], cached_prefix)


class _Cached(msgspec.Struct, frozen=True):
    read: int
    written_5m: int
    written_1h: int
    rest: int


def _cached(body: Document, owner: str, cache: PromptCache) -> _Cached:
    """Counts tokens by cache breakpoint: the cached prefix counts as read, the blocks from there to the
    last breakpoint as written.
    """
    blocks = [*list_of(body, "tools"), *_blocks(body.get("system"))]
    blocks += [block for message in list_of(body, "messages") for block in _blocks(message.get("content"))]
    digest, tokens, ends = hashlib.blake2b(owner.encode(), digest_size=16), 0, list[tuple[int, bytes, str]]()
    for number, block in enumerate(blocks):
        text = msgspec.json.encode({name: block[name] for name in block if name != "cache_control"})
        digest.update(text)
        tokens += tokens_of(str(block["text"]) if "text" in block else text.decode())
        is_last = number == len(blocks) - 1
        mark: Document | None = block.get("cache_control") or (body.get("cache_control") if is_last else None)
        if mark:
            ends.append((tokens, digest.digest(), mark.get("ttl", "5m")))
    if len(ends) > BREAKPOINTS_MAX:
        message = (
            f"A maximum of {BREAKPOINTS_MAX} blocks with cache_control may be provided. Found {len(ends)}."
        )
        raise RequestRejected(400, INVALID, message)
    return _read_and_write([end for end in ends if end[0] >= TOKENS_MIN], tokens, cache)


def _read_and_write(ends: list[tuple[int, bytes, str]], tokens: int, cache: PromptCache) -> _Cached:
    read = max((end for end, prefix, _ in ends if cache.is_cached(prefix)), default=0)
    written, before = {"5m": 0, "1h": 0}, read
    for end, prefix, lifetime in ends:
        cache.add(prefix, lifetime_s=LIFETIMES_S[lifetime])
        written[lifetime] += max(0, end - before)
        before = max(before, end)
    return _Cached(read, written["5m"], written["1h"], tokens - before)


@post("/messages", status_code=200)
async def create_message(request: AnyRequest, state: State) -> Response[Document]:
    body = await document_of(request, INVALID)
    _check(body)
    tool, wanted = _tool(body), part_of(part_of(body, "output_config"), "format")
    schema: Document | None = tool["input_schema"] if tool else wanted.get("schema")
    cached_prefix, user_message = _prompt(body)
    completions = Completions(cached_prefix, "\n".join(user_message))
    value = completions.text() if schema is None else completions.value(schema)
    owner = f"anthropic {_key_of(request)} {body['model']}"
    cached = _cached(body, owner, state.prompt_cache)
    content = _message(body, tool, value, cached)
    return Response(content, status_code=200, headers={"request-id": f"req_{uuid.uuid4().hex}"})


def _message(body: Document, tool: Document | None, value: Value, cached: _Cached) -> Document:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    effort = part_of(body, "output_config").get("effort")
    thinking = min(EFFORT_TOKENS.get(str(effort), 0), body["max_tokens"] // 2)
    is_cut = tokens_of(text) + thinking > body["max_tokens"]
    if is_cut:
        text = text.encode()[: (body["max_tokens"] - thinking) * BYTES_PER_TOKEN].decode("utf-8", "ignore")
    block: Document = {"type": "text", "text": text, "citations": None}
    if tool:
        used: Value = {} if is_cut else value
        block = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex}", "name": tool["name"], "input": used}
    end = "tool_use" if tool else "end_turn"
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [block],
        "container": None,
        "stop_reason": "max_tokens" if is_cut else end,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {
            "input_tokens": cached.rest,
            "cache_creation_input_tokens": cached.written_5m + cached.written_1h,
            "cache_read_input_tokens": cached.read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": cached.written_5m,
                "ephemeral_1h_input_tokens": cached.written_1h,
            },
            "output_tokens": tokens_of(text) + thinking,
            "output_tokens_details": {"thinking_tokens": thinking},
            "server_tool_use": None,
            "service_tier": "standard",
        },
    }


def _error_document(error: RequestRejected) -> Document:
    return anthropic_error(error.status, error.code, error.message)


def anthropic_router() -> Router:
    return Router(
        PATH,
        route_handlers=[create_message],
        guards=[_has_key],
        exception_handlers=error_handlers(_error_document),
    )
