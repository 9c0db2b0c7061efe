"""Frames of server-sent events (HTML, 9.2)."""

import re
from collections.abc import AsyncIterator

from features.runs.application.live_runs import RunView

HEARTBEAT = b": alive\n\n"
_VERSION = re.compile("[0-9]{1,18}")


async def frames(first: RunView, views: AsyncIterator[RunView | None]) -> AsyncIterator[bytes]:
    """``first`` is the run when the stream was opened. Sends the ``end`` event only if the run has ended."""
    last = first
    async for view in views:
        if view is None:
            yield HEARTBEAT
        else:
            last = view
            yield b"id: %d\nevent: run\ndata: %b\n\n" % (view.out.version, view.body)
    if last.is_ended:
        yield b"id: %d\nevent: end\ndata: {}\n\n" % last.out.version


def seen_version(last_event_id: str | None) -> int:
    """Returns 0 without an id or with an id that we did not send."""
    return int(last_event_id) if last_event_id and _VERSION.fullmatch(last_event_id) else 0
