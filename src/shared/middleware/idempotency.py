"""A POST may be repeated: the same Idempotency-Key and body bring the same answer, and one effect."""

from uuid import UUID, uuid4

from litestar.types import Scope

_EFFECT_ID = "oslira_effect_id"


def effect_id(scope: Scope) -> UUID:
    """The id for what this request creates: the same for every attempt under one Idempotency-Key, so
    that an attempt which died half-way is continued, not doubled. Insert with it, and on conflict return
    what is there.
    """
    return scope["state"].get(_EFFECT_ID) or uuid4()
