"""Object store in a local folder."""

import errno
import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from infrastructure.object_store.port import (
    ObjectStore,
    ObjectStoreUnavailable,
    check_key,
    check_size,
)
from infrastructure.resilience.daemon_threads import DaemonThreadPool

T = TypeVar("T")

THREADS = 4
# Age of incomplete files of killed processes; a live process finishes its own much sooner.
DRAFT_AGE_MAX_S = 3_600.0
PURGE_INTERVAL_S = 3_600.0
SEPARATOR = "+"  # replaces the slash of a key; not a valid key character


class LocalObjectStore(ObjectStore):
    """Several processes may share the folder. An object is written to a temporary file and renamed, which
    replaces the previous object atomically.
    """

    def __init__(self, folder: Path, *, now_s: Callable[[], float] = time.time) -> None:
        self._folder = folder
        # In the same file system as the objects, and in one folder, so that incomplete files can be found.
        self._incoming = folder / "incoming"
        self._threads = DaemonThreadPool("objects", size=THREADS)
        self._now_s = now_s
        self._purge_due_s = 0.0

    async def get(self, key: str) -> bytes | None:
        check_key(key)
        return await self._run(partial(self._read, key))

    async def put(self, key: str, data: bytes) -> None:
        check_key(key)
        check_size(len(data))
        await self._run(partial(self._write, key, data))

    async def delete(self, key: str) -> None:
        check_key(key)
        await self._run(partial(self._path(key).unlink, missing_ok=True))

    async def probe(self) -> str:
        await self._run(self._write_and_remove)
        return f"folder {self._folder.name}"

    async def close(self) -> None:
        self._threads.close()

    async def _run(self, call: Callable[[], T]) -> T:
        try:
            return await self._threads.run(call)
        except OSError as error:
            # Only the name of the error, because its text contains the path.
            reason = errno.errorcode.get(error.errno or 0, type(error).__name__)
            raise ObjectStoreUnavailable(reason=reason) from error

    def _path(self, key: str) -> Path:
        # A million objects are about fifteen per folder in 65,536 folders.
        digest = hashlib.sha256(key.encode()).hexdigest()
        return self._folder / digest[:2] / digest[2:4] / key.replace("/", SEPARATOR)

    def _read(self, key: str) -> bytes | None:
        try:
            with self._path(key).open("rb") as file:
                check_size(os.fstat(file.fileno()).st_size)
                return file.read()
        except FileNotFoundError:
            return None

    def _write(self, key: str, data: bytes) -> None:
        self._purge_drafts_when_due()
        draft = self._draft(data)
        try:
            self._move(draft, self._path(key))
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def _draft(self, data: bytes) -> Path:
        self._incoming.mkdir(parents=True, exist_ok=True)
        draft = self._incoming / uuid4().hex
        try:
            with draft.open("xb") as file:
                file.write(data)
                file.flush()
                # Without fsync, a power failure could leave an empty file, because a rename may reach the
                # disk before the content. This takes milliseconds, outside the event loop and after a scrape
                # of seconds. If the rename itself is lost, the previous object is still there.
                os.fsync(file.fileno())
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        return draft

    def _move(self, draft: Path, path: Path) -> None:
        try:
            draft.replace(path)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(path)

    def _write_and_remove(self) -> None:
        self._draft(b"probe").unlink()

    def _purge_drafts_when_due(self) -> None:
        now_s = self._now_s()
        if now_s < self._purge_due_s:
            return
        self._purge_due_s = now_s + PURGE_INTERVAL_S
        for name in _names(self._incoming):
            # An error must not prevent the write; the next cleanup finds the same files.
            with suppress(OSError):
                draft = self._incoming / name
                if now_s - draft.stat().st_mtime > DRAFT_AGE_MAX_S:
                    draft.unlink()


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208  names suffice
    except (FileNotFoundError, NotADirectoryError):
        return []
