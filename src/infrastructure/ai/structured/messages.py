"""What every provider is sent alike."""

import hashlib
from typing import Any

import msgspec

from infrastructure.ai.providers.base import ModelRequest, ProviderError


def stable_parts(request: ModelRequest) -> list[str]:
    return [part for part in request.stable if part.strip()]  # an empty one is refused


def turns(request: ModelRequest) -> list[dict[str, str]]:
    """The question; where an answer has to be mended, that answer and the complaint, too."""
    spoken = [{"role": "user", "content": request.question}]
    if request.complaint is not None:
        if request.malformed_answer and request.malformed_answer.strip():
            spoken.append({"role": "assistant", "content": request.malformed_answer})
        spoken.append({"role": "user", "content": request.complaint})
    return spoken


def pseudonym(text: str) -> str:
    """Always the same for the same text, and the text cannot be told from it."""
    return hashlib.sha256(text.encode()).hexdigest()


def encoded(body: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:  # half a character, which no JSON can hold
        pass  # raised below, where no context is kept that quotes the prompt
    raise ProviderError("invalid", was_sent=False, is_simulated=False, detail="not Unicode")
