"""Queue definition: concurrency limits and poll interval."""

import msgspec


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """Without ``worker_concurrency`` one poll would claim the whole backlog. A short poll interval starts
    runs sooner but costs statements while the queue is empty. ``runs.admit`` limits the runs of one account.
    """

    name: str
    worker_concurrency: int = 20
    global_concurrency: int | None = None
    poll_interval_s: float = 1.0
