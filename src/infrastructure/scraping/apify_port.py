"""Interface to Apify without its client, which takes a second to import."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol

import msgspec

OVER = frozenset({"SUCCEEDED", "FAILED", "TIMED-OUT", "ABORTED"})


class ActorRunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A run to start and the limit of its cost."""

    actor: str
    input: dict[str, Any]
    items_max: int  # charged items
    usd_max: Decimal
    timeout_s: float
    memory_mbytes: int | None = None  # None: the actor's default


class ActorRun(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    dataset_id: str
    status: str
    usd: float | None = None  # cost; not reported for every kind of actor
    item_usd: float | None = None  # price per item, for actors charged by result

    @property
    def is_over(self) -> bool:
        return self.status in OVER


class DatasetItems(msgspec.Struct, frozen=True):
    found: list[Any]
    total: int  # may exceed the number of items read


class ActorRuns(Protocol):
    """Each call is one request, or one per page. Raises only ScrapeError."""

    async def start(self, order: ActorRunRequest, *, mark: str) -> ActorRun: ...

    async def marked(self, actor: str, *, mark: str, since: datetime) -> list[ActorRun]:
        """The runs that were started with this mark."""
        ...

    async def wait(self, run_id: str, *, wait_s: float) -> ActorRun:
        """Returns when the run has ended or after ``wait_s``."""
        ...

    async def items(self, run: ActorRun, *, items_max: int) -> DatasetItems: ...

    async def abort(self, run_id: str) -> ActorRun: ...
