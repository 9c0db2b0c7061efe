from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

import msgspec

from features.operations.domain.audit_log import AuditLogFilter, StoredAuditEntry
from features.operations.domain.jobs import CronRun, Job, Report, Trigger
from shared.ids import UserId
from shared.pagination import Cursor

ClaimOutcome = Literal["claimed", "known", "before_us"]
CronBeginOutcome = Literal["begun", "ended", "unknown", "fenced", "exhausted"]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """``id``: the same one again brings the same run."""

    job: str
    slot: datetime
    id: UUID
    trigger: Trigger
    is_dry_run: bool = False
    requested_by: UserId | None = None


class Schedule(Protocol):
    """When jobs are due."""

    def next_after(self, job: Job, at: datetime) -> datetime: ...

    def latest_until(self, job: Job, at: datetime) -> datetime | None:
        """None: it was not due for a year."""
        ...


class CronClaims(Protocol):
    async def claim(self, claim: Claim) -> tuple[ClaimOutcome, CronRun | None]:
        """Of any number who claim a slot one gets it, and its work is in the queue."""
        ...


class CronExecutions(Protocol):
    async def begin(
        self, job: str, slot: datetime, *, executor: str, attempts_max: int
    ) -> tuple[CronBeginOutcome, CronRun | None]: ...

    async def finish(self, run: CronRun, report: Report, *, error: str | None) -> bool:
        """False: another attempt has begun, or it had ended before."""
        ...

    async def close_lost(self) -> int: ...


class CronHistory(Protocol):
    async def now(self) -> datetime:
        """The database's time, which all processes share."""
        ...

    async def find(self, job: str, run_id: UUID) -> CronRun | None: ...

    async def last_runs(self) -> dict[str, CronRun]:
        """The newest of each job, dry runs aside."""
        ...

    async def page(self, job: str, *, before: Cursor | None, runs_max: int) -> list[CronRun]:
        """Newest first."""
        ...


class AuditLogReader(Protocol):
    async def page(
        self, only: AuditLogFilter, *, before: Cursor | None, acts_max: int
    ) -> list[StoredAuditEntry]:
        """Newest first."""
        ...


class Retention(Protocol):
    """Rows that have had their time; which those are is the database's to say, table by table."""

    async def remove(self, table: str, rows_max: int) -> int:
        """Some of them; how many it were."""
        ...

    async def count(self, table: str) -> int: ...


class StalledRuns(Protocol):
    """Runs that nobody will finish. Kept by the runs' slice."""

    async def close_lost(self) -> int: ...

    async def forget_ended(self) -> int: ...


class RetentionPreview(Protocol):
    """What jobs would find, for a look beforehand."""

    async def lost_runs(self) -> int: ...

    async def lapsed_lots(self) -> tuple[int, int]:
        """Of how many accounts, and how many credits."""
        ...


class LotExpiry(Protocol):
    """Kept by the credits' slice."""

    async def expire(self) -> tuple[int, int]: ...
