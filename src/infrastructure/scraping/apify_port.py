"""What a look asks of Apify, without its client, which takes a second to import."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol

import msgspec

OVER = frozenset({"SUCCEEDED", "FAILED", "TIMED-OUT", "ABORTED"})


class ActorRunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A run to be made, and what it may cost at the most."""

    actor: str
    input: dict[str, Any]
    items_max: int  # that are paid for
    usd_max: Decimal
    timeout_s: float
    memory_mbytes: int | None = None  # the actor's own default


class ActorRun(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    dataset_id: str
    status: str
    usd: float | None = None  # what it costs; not every kind of actor says so
    item_usd: float | None = None  # where it is paid for by its results

    @property
    def is_over(self) -> bool:
        return self.status in OVER


class DatasetItems(msgspec.Struct, frozen=True):
    found: list[Any]
    total: int  # there may be more than were read


class ActorRuns(Protocol):
    """Each call is one request, or as many as there are pages. Raises ScrapeTrouble and nothing else."""

    async def start(self, order: ActorRunRequest, *, mark: str) -> ActorRun: ...

    async def marked(self, actor: str, *, mark: str, since: datetime) -> list[ActorRun]:
        """Those that were started with this mark."""
        ...

    async def wait(self, run_id: str, *, wait_s: float) -> ActorRun:
        """As it is when it is over, or after that time."""
        ...

    async def items(self, run: ActorRun, *, items_max: int) -> DatasetItems: ...

    async def abort(self, run_id: str) -> ActorRun: ...
