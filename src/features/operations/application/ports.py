from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

import msgspec

from features.operations.domain.audit_log import AuditLogFilter, StoredAuditEntry
from features.operations.domain.jobs import CronRun, Job, Report, Trigger
from features.operations.domain.retention import RetentionRule
from shared.ids import UserId
from shared.pagination import Cursor

ClaimOutcome = Literal["claimed", "existing", "before_installation"]
CronBeginOutcome = Literal["begun", "ended", "unknown", "fenced", "exhausted"]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Claim of one slot, idempotent by ``id``."""

    job: str
    slot: datetime
    id: UUID
    trigger: Trigger
    is_dry_run: bool = False
    requested_by: UserId | None = None


class Schedule(Protocol):
    """Calculates the due times of jobs."""

    def next_after(self, job: Job, at: datetime) -> datetime: ...

    def latest_until(self, job: Job, at: datetime) -> datetime | None:
        """Returns None if the job was not due within the last year."""
        ...


class CronClaims(Protocol):
    async def claim(self, claim: Claim) -> tuple[ClaimOutcome, CronRun | None]:
        """Exactly one of several concurrent claims of a slot succeeds and queues the run."""
        ...


class CronExecutions(Protocol):
    async def begin(
        self, job: str, slot: datetime, *, executor: str, attempts_max: int
    ) -> tuple[CronBeginOutcome, CronRun | None]: ...

    async def finish(self, run: CronRun, report: Report, *, error: str | None) -> bool:
        """Returns False if another attempt has begun or the run had already ended."""
        ...

    async def fail_stalled(self) -> int: ...


class CronHistory(Protocol):
    async def now(self) -> datetime:
        """Returns the database time, which all processes share."""
        ...

    async def find(self, job: str, run_id: UUID) -> CronRun | None: ...

    async def last_runs(self) -> dict[str, CronRun]:
        """Returns the newest run of each job, without dry runs."""
        ...

    async def page(self, job: str, *, before: Cursor | None, runs_max: int) -> list[CronRun]:
        """Newest first."""
        ...


class AuditLogReader(Protocol):
    async def page(
        self, only: AuditLogFilter, *, before: Cursor | None, entries_max: int
    ) -> list[StoredAuditEntry]:
        """Newest first."""
        ...


class Retention(Protocol):
    """Deletion of the rows whose retention period is over."""

    async def purge(self, rule: RetentionRule) -> int:
        """Deletes one batch and returns its size, 0 when no expired rows are left."""
        ...

    async def count(self, rule: RetentionRule) -> int: ...


class StalledRuns(Protocol):
    """Runs that no worker will finish. Implemented by the runs slice."""

    async def fail_stalled(self) -> int: ...

    async def purge_ended(self) -> int: ...


class RetentionPreview(Protocol):
    """Counts for dry runs of the jobs."""

    async def stalled_runs(self) -> int: ...

    async def expired_lots(self) -> tuple[int, int]:
        """Returns the numbers of accounts and of credits."""
        ...


class LotExpiry(Protocol):
    """Implemented by the credits slice."""

    async def expire(self) -> tuple[int, int]: ...
