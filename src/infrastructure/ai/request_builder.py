"""Conversion of a structured prompt into a provider's request, and its cache keys."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from infrastructure.ai.model_catalog import Candidate
from infrastructure.ai.providers.base import ModelProvider, ModelReply, ModelRequest
from infrastructure.ai.response_format import Malformed, response_format
from infrastructure.ai.routing.attempts import Attempt, Validation
from infrastructure.ai.routing.fallback_policy import Repair
from shared.llm import StructuredPrompt

BYTES_PER_TOKEN = 4


class RequestBuilder:
    def __init__(self, prompt: StructuredPrompt[Any], providers: Mapping[str, ModelProvider]) -> None:
        self.prompt = prompt
        self.format = response_format(prompt.output_type)
        self._providers = providers
        self._prefix_key = prefix_key(prompt)
        texts = (*prompt.cached_prefix, prompt.user_message)
        self._bytes = len(self.format.schema_bytes) + sum(map(_size, texts))

    def completion_key(self, candidate: Candidate, repair: Repair | None = None) -> bytes:
        # A repair needs its own key; otherwise a cache would return the malformed completion again.
        more = () if repair is None else (repr(repair).encode("utf-8", "replace"),)
        return completion_key(self.prompt, candidate, self.format.schema_bytes, *more)

    def attempt(self, candidate: Candidate, repair: Repair | None = None) -> Attempt:
        provider = self._providers[candidate.model.provider]
        request = self._request(candidate, repair)
        shown = "" if repair is None else (repair.malformed_completion or "")
        return Attempt(
            model=candidate.model,
            tokens_estimated=(self._bytes + _size(shown)) // BYTES_PER_TOKEN,
            send=lambda deadline_s: provider.complete(request, deadline_s=deadline_s),
            validate=self._validate,
        )

    def _validate(self, reply: ModelReply) -> Validation:
        if reply.end == "refused":
            return Validation("refused")
        try:
            self.format.decode(reply.text)
        except Malformed as malformed:
            return Validation("truncated" if reply.end == "truncated" else "malformed", str(malformed))
        return Validation("answered")

    def _request(self, candidate: Candidate, repair: Repair | None) -> ModelRequest:
        prompt = self.prompt
        return ModelRequest(
            model=candidate.model.name,
            cached_prefix=prompt.cached_prefix,
            user_message=prompt.user_message,
            response_format=self.format,
            effort=candidate.effort,
            temperature=candidate.temperature,
            output_tokens_max=candidate.output_tokens_max if repair is None else repair.output_tokens_max,
            prefix_key=self._prefix_key,
            completion_key=self.completion_key(candidate, repair).hex(),
            owner=prompt.cost_owner,
            task=prompt.task,
            is_fresh=prompt.is_fresh or repair is not None,
            malformed_completion=None if repair is None else repair.malformed_completion,
            validation_error=None if repair is None else repair.validation_error,
        )


def completion_key(prompt: StructuredPrompt[Any], candidate: Candidate, schema: bytes, *more: bytes) -> bytes:
    return _digest(
        (
            _tenant(prompt),
            prompt.task.encode(),
            candidate.model.name.encode(),
            (candidate.effort or "").encode(),
            b"" if candidate.temperature is None else repr(candidate.temperature).encode(),
            len(prompt.cached_prefix).to_bytes(4, "big"),
            *(part.encode("utf-8", "surrogatepass") for part in prompt.cached_prefix),
            prompt.user_message.encode("utf-8", "surrogatepass"),
            schema,
            *more,
        )
    )


def prefix_key(prompt: StructuredPrompt[Any]) -> str:
    """Key of the cached prefix. Short, because providers limit its length."""
    parts = (part.encode("utf-8", "surrogatepass") for part in prompt.cached_prefix)
    return _digest((_tenant(prompt), prompt.task.encode(), *parts)).hex()[:32]


def _tenant(prompt: StructuredPrompt[Any]) -> bytes:
    """Every key contains the account."""
    account_id = prompt.cost_owner.account_id
    return b"no account" if account_id is None else account_id.bytes


def _digest(parts: Iterable[bytes]) -> bytes:
    """Hashes each part with its length, so that different lists of parts never yield the same bytes."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "big"))
        hashed.update(part)
    return hashed.digest()


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
