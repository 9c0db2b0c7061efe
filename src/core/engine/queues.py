"""Where runs wait, and how many of them are worked on at once."""

import msgspec


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """``partition_concurrency`` makes every run name a partition, usually its account: no partition has
    more than that at work, and each gets its turn. Without ``worker_concurrency`` one look would claim the
    whole backlog. A short poll starts runs sooner and costs statements while nothing happens.
    """

    name: str
    worker_concurrency: int = 20
    global_concurrency: int | None = None
    partition_concurrency: int | None = None
    poll_interval_s: float = 1.0
