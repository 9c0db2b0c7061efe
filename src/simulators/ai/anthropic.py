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
from simulators.ai.prompt_cache import BYTES_A_TOKEN, TOKENS_MIN, PromptCache, tokens_of
from simulators.faults.json_access import Document, Value, list_of, part_of
from simulators.faults.provider_errors import AnyRequest, RequestRejected, document_of, error_handlers

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


def _check(asked: Document) -> None:
    model = asked.get("model", "")
    if not MODELS.fullmatch(str(model)):
        raise RequestRejected(404, "not_found_error", f"model: {model}")
    for name in ("max_tokens", "messages"):
        if not asked.get(name):
            raise RequestRejected(400, INVALID, f"{name}: Field required")
    for name in REFUSED:
        if asked.get(name) is not None:
            raise RequestRejected(400, INVALID, f"{name}: `{name}` is not supported on this model.")
    if asked.get("stream"):
        raise RequestRejected(400, INVALID, "stream: the simulator does not stream.")


def _blocks(content: Value) -> list[Document]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _tool(asked: Document) -> Document | None:
    """Returns the tool that the model must call, or None when the request forces none."""
    choice, tools = part_of(asked, "tool_choice"), list_of(asked, "tools")
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


def _prompt(asked: Document) -> tuple[list[str], list[str]]:
    stable = [str(block.get("text", "")) for block in _blocks(asked.get("system"))]
    turns = [block for message in list_of(asked, "messages") for block in _blocks(message.get("content"))]
    # Blocks with cache_control are the part of the prompt that repeats between requests.
    stable += [str(block.get("text", "")) for block in turns if block.get("cache_control")]
    question = [str(block.get("text", "")) for block in turns if not block.get("cache_control")]
    return (stable, question) if question else ([], stable)


class _Cached(msgspec.Struct, frozen=True):
    read: int
    written_5m: int
    written_1h: int
    rest: int


def _cached(asked: Document, owner: str, memory: PromptCache) -> _Cached:
    """Counts tokens by cache breakpoint: the cached prefix counts as read, the blocks from there to the
    last breakpoint as written.
    """
    blocks = [*list_of(asked, "tools"), *_blocks(asked.get("system"))]
    blocks += [block for message in list_of(asked, "messages") for block in _blocks(message.get("content"))]
    digest, tokens, ends = hashlib.blake2b(owner.encode(), digest_size=16), 0, list[tuple[int, bytes, str]]()
    for number, block in enumerate(blocks):
        text = msgspec.json.encode({name: block[name] for name in block if name != "cache_control"})
        digest.update(text)
        tokens += tokens_of(str(block["text"]) if "text" in block else text.decode())
        is_last = number == len(blocks) - 1
        mark: Document | None = block.get("cache_control") or (
            asked.get("cache_control") if is_last else None
        )
        if mark:
            ends.append((tokens, digest.digest(), mark.get("ttl", "5m")))
    if len(ends) > BREAKPOINTS_MAX:
        message = (
            f"A maximum of {BREAKPOINTS_MAX} blocks with cache_control may be provided. Found {len(ends)}."
        )
        raise RequestRejected(400, INVALID, message)
    return _read_and_write([end for end in ends if end[0] >= TOKENS_MIN], tokens, memory)


def _read_and_write(ends: list[tuple[int, bytes, str]], tokens: int, memory: PromptCache) -> _Cached:
    read = max((end for end, prefix, _ in ends if memory.knows(prefix)), default=0)
    written, before = {"5m": 0, "1h": 0}, read
    for end, prefix, lifetime in ends:
        memory.remember(prefix, lifetime_s=LIFETIMES_S[lifetime])
        written[lifetime] += max(0, end - before)
        before = max(before, end)
    return _Cached(read, written["5m"], written["1h"], tokens - before)


@post("/messages", status_code=200)
async def create_message(request: AnyRequest, state: State) -> Response[Document]:
    asked = await document_of(request, INVALID)
    _check(asked)
    tool, wanted = _tool(asked), part_of(part_of(asked, "output_config"), "format")
    schema: Document | None = tool["input_schema"] if tool else wanted.get("schema")
    stable, question = _prompt(asked)
    answers = Completions(stable, "\n".join(question))
    value = answers.text() if schema is None else answers.value(schema)
    owner = f"anthropic {_key_of(request)} {asked['model']}"
    cached = _cached(asked, owner, state.prompt_memory)
    content = _message(asked, tool, value, cached)
    return Response(content, status_code=200, headers={"request-id": f"req_{uuid.uuid4().hex}"})


def _message(asked: Document, tool: Document | None, value: Value, cached: _Cached) -> Document:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    effort = part_of(asked, "output_config").get("effort")
    thinking = min(EFFORT_TOKENS.get(str(effort), 0), asked["max_tokens"] // 2)
    is_cut = tokens_of(text) + thinking > asked["max_tokens"]
    if is_cut:
        text = text.encode()[: (asked["max_tokens"] - thinking) * BYTES_A_TOKEN].decode("utf-8", "ignore")
    block: Document = {"type": "text", "text": text, "citations": None}
    if tool:
        used: Value = {} if is_cut else value
        block = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex}", "name": tool["name"], "input": used}
    end = "tool_use" if tool else "end_turn"
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": asked["model"],
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


def _form(refusal: RequestRejected) -> Document:
    error = {"type": refusal.code, "message": refusal.message}
    return {"type": "error", "error": error, "request_id": f"req_{uuid.uuid4().hex}"}


def anthropic_router() -> Router:
    return Router(
        PATH, route_handlers=[create_message], guards=[_has_key], exception_handlers=error_handlers(_form)
    )
