"""Server-sent events: frames as the standard has them (HTML, 9.2)."""

import re
from collections.abc import AsyncIterator

from features.runs.application.live_runs import RunView

HEARTBEAT = b": alive\n\n"
_VERSION = re.compile("[0-9]{1,18}")


async def frames(first: RunView, views: AsyncIterator[RunView | None]) -> AsyncIterator[bytes]:
    """``first``: the run as it was when the stream was opened. Only a run that has ended has an end."""
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
    """0: nothing, or nothing of ours."""
    return int(last_event_id) if last_event_id and _VERSION.fullmatch(last_event_id) else 0
