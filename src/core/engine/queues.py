"""Where runs wait, and how many of them are worked on at once."""

import msgspec


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """Without ``worker_concurrency`` one look would claim the whole backlog. A short poll starts runs sooner
    and costs statements while nothing happens. How many an account has in a queue is not the queue's
    business: see ``runs.admit``.
    """

    name: str
    worker_concurrency: int = 20
    global_concurrency: int | None = None
    poll_interval_s: float = 1.0
