"""Objects by key, wherever they are kept."""

import re
from datetime import datetime
from typing import Protocol

import msgspec

from shared.errors import Unavailable

KEY_CHARACTERS_MAX = 200
OBJECT_BYTES_MAX = 16 * 1024 * 1024
PAGE_MAX = 1_000  # of S3
# What every place understands in the same way, whether it tells capitals apart or not. Who needs other
# characters hashes them. No part begins with a dot, so none leads elsewhere.
_KEY = re.compile(r"[a-z0-9_][a-z0-9._-]*(?:/[a-z0-9_][a-z0-9._-]*)*")


class ObjectStoreUnavailable(Unavailable):
    code = "object_store_unavailable"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason  # a name: of an error, of a service's code; never its text

    def __str__(self) -> str:
        return f"The object store does not do its work: {self.reason}."


class StoredObject(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    stored_at: datetime


class ObjectStore(Protocol):
    """An object is there as a whole or not at all, also while it is replaced. Everything raises
    ObjectStoreUnavailable, and ValueError for what is no key.
    """

    async def get(self, key: str) -> bytes | None: ...

    async def put(self, key: str, data: bytes) -> None: ...

    async def delete(self, key: str) -> None:
        """May be repeated."""
        ...

    async def page(
        self, prefix: str, *, after: str | None = None, limit: int = PAGE_MAX
    ) -> tuple[StoredObject, ...]:
        """What begins with ``prefix``, in an order of the store's own, from behind the key ``after``, which
        need not be there any more. The end is an empty page.
        """
        ...

    async def probe(self) -> str:
        """In a few words where objects are kept."""
        ...

    async def close(self) -> None: ...


def is_key(text: str) -> bool:
    return len(text) <= KEY_CHARACTERS_MAX and _KEY.fullmatch(text) is not None


def check_key(key: str) -> None:
    if not is_key(key):
        raise ValueError(f"not a key: {key[:KEY_CHARACTERS_MAX]!r}")


def check_size(bytes_count: int) -> None:
    """So that one object, whoever put it there, does not fill the memory."""
    if bytes_count > OBJECT_BYTES_MAX:
        raise ObjectStoreUnavailable("ObjectTooLarge")
