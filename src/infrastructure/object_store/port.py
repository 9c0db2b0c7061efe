"""Interface of the object store."""

import re
from typing import Protocol

from shared.errors import Unavailable

KEY_CHARACTERS_MAX = 200
OBJECT_BYTES_MAX = 16 * 1024 * 1024
# Characters that every store treats alike, case-sensitive or not; other characters must be hashed. No part
# begins with a dot, so that a key cannot leave its folder.
_KEY = re.compile(r"[a-z0-9_][a-z0-9._-]*(?:/[a-z0-9_][a-z0-9._-]*)*")


class ObjectStoreUnavailable(Unavailable):
    code = "object_store_unavailable"
    text = "The object store is unavailable: {reason}."
    reason: str  # name of an error or a service's code, never its text


class ObjectStore(Protocol):
    """Reads and writes are atomic, also while an object is replaced. All methods raise
    ObjectStoreUnavailable, and ValueError for an invalid key.
    """

    async def get(self, key: str) -> bytes | None: ...

    async def put(self, key: str, data: bytes) -> None: ...

    async def delete(self, key: str) -> None:
        """Idempotent."""
        ...

    async def probe(self) -> str:
        """Checks the store and returns a short description of it."""
        ...

    async def close(self) -> None: ...


def is_key(text: str) -> bool:
    return len(text) <= KEY_CHARACTERS_MAX and _KEY.fullmatch(text) is not None


def check_key(key: str) -> None:
    if not is_key(key):
        raise ValueError(f"not a key: {key[:KEY_CHARACTERS_MAX]!r}")


def check_size(bytes_count: int) -> None:
    """Raises ObjectStoreUnavailable for an object that would use too much memory."""
    if bytes_count > OBJECT_BYTES_MAX:
        raise ObjectStoreUnavailable(reason="ObjectTooLarge")
