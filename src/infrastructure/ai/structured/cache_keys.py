"""Cache keys of prompts. Every key contains the account."""

import hashlib
from collections.abc import Iterable

from infrastructure.ai.routing.candidates import Candidate
from shared.llm import CostOwner, StructuredPrompt


def digest(parts: Iterable[bytes]) -> bytes:
    """Hashes each part with its length, so that different lists of parts never yield the same bytes."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "big"))
        hashed.update(part)
    return hashed.digest()


def partition_of(spender: CostOwner) -> bytes:
    return b"nobody" if spender.account_id is None else spender.account_id.bytes


def answer_key(question: StructuredPrompt[object], leg: Candidate, schema: bytes, *more: bytes) -> bytes:
    return digest(
        (
            partition_of(question.spender),
            question.task.encode(),
            leg.model.name.encode(),
            (leg.effort or "").encode(),
            b"" if leg.temperature is None else repr(leg.temperature).encode(),
            len(question.stable).to_bytes(4, "big"),
            *(part.encode("utf-8", "surrogatepass") for part in question.stable),
            question.question.encode("utf-8", "surrogatepass"),
            schema,
            *more,
        )
    )


def cache_key(question: StructuredPrompt[object]) -> str:
    """Key of the stable prefix. Short, because providers limit its length."""
    parts = (
        partition_of(question.spender),
        question.task.encode(),
        *(part.encode("utf-8", "surrogatepass") for part in question.stable),
    )
    return digest(parts).hex()[:32]
