"""Message parts common to all providers."""

import hashlib
from typing import Any

import msgspec

from infrastructure.ai.providers.base import ModelRequest, ProviderError


def stable_parts(request: ModelRequest) -> list[str]:
    return [part for part in request.stable if part.strip()]  # providers reject an empty part


def turns(request: ModelRequest) -> list[dict[str, str]]:
    """The question; for a repair also the malformed completion and the validation error."""
    spoken = [{"role": "user", "content": request.question}]
    if request.complaint is not None:
        if request.malformed_answer and request.malformed_answer.strip():
            spoken.append({"role": "assistant", "content": request.malformed_answer})
        spoken.append({"role": "user", "content": request.complaint})
    return spoken


def pseudonym(text: str) -> str:
    """Deterministic hash from which the text cannot be recovered."""
    return hashlib.sha256(text.encode()).hexdigest()


def encoded(body: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:  # lone surrogate, which JSON cannot encode
        pass  # raised below, so that no exception context quotes the prompt
    raise ProviderError("invalid", was_sent=False, is_simulated=False, detail="not Unicode")
