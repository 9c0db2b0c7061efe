"""Cron jobs and their history, for operators."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from features.operations.application.ports import Claim, CronClaims, CronHistory, Schedule
from features.operations.domain.errors import CronRunNotFound, JobUnknown, SlotNotDue, SlotOfDryRun
from features.operations.domain.jobs import CronRun, Job
from shared.ids import UserId
from shared.pagination import Cursor, Page, decode_cursor, page_of


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    job: Job
    next_due_at: datetime
    last_run: CronRun | None


@dataclass(frozen=True, slots=True)
class Cron:
    jobs: Mapping[str, Job]
    timetable: Schedule
    claims: CronClaims
    history: CronHistory

    async def standings(self) -> list[JobStatus]:
        now, last_runs = await self.history.now(), await self.history.last_runs()
        return [
            JobStatus(
                job=job, next_due_at=self.timetable.next_after(job, now), last_run=last_runs.get(job.name)
            )
            for job in self.jobs.values()
        ]

    async def run(
        self, name: str, *, run_id: UUID, operator_id: UserId, is_dry_run: bool, slot: datetime | None
    ) -> CronRun:
        """Queues a run now or for a past slot. Idempotent by slot and by ``run_id``: returns the existing
        run.
        """
        job, now = self._job(name), await self.history.now()
        if slot is not None and is_dry_run:
            raise SlotOfDryRun
        if slot is not None and slot > now:
            raise SlotNotDue
        claim = Claim(
            job=job.name,
            slot=slot or now,
            id=run_id,
            trigger="operator",
            is_dry_run=is_dry_run,
            requested_by=operator_id,
        )
        _, run = await self.claims.claim(claim)
        assert run is not None, "an operator's slot is claimed, or known"
        return run

    async def find(self, name: str, run_id: UUID) -> CronRun:
        run = await self.history.find(self._job(name).name, run_id)
        if run is None:
            raise CronRunNotFound
        return run

    async def page(self, name: str, *, cursor: str | None, limit: int) -> Page[CronRun]:
        runs = await self.history.page(self._job(name).name, before=decode_cursor(cursor), runs_max=limit + 1)
        return page_of(runs, limit, lambda run: Cursor(run.slot, run.id))

    def _job(self, name: str) -> Job:
        job = self.jobs.get(name)
        if job is None:
            raise JobUnknown
        return job
