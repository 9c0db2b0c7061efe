"""Generated local key for development machines without a configured key."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

KEY_LENGTH = 32


def local_key(path: Path) -> bytes:
    """Returns the same key on every call."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written to a temporary file and linked, so that two concurrent processes get the same key.
        with tempfile.NamedTemporaryFile(dir=path.parent) as file:  # created with mode 0600
            file.write(os.urandom(KEY_LENGTH))
            file.flush()
            with suppress(FileExistsError):
                os.link(file.name, path)
    return path.read_bytes()
