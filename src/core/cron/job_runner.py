"""Execution of one claimed slot of a cron job."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import structlog

from features.operations.application.ports import CronExecutions
from features.operations.domain.jobs import FINDINGS_MAX, CronRun, Job, Report
from shared.errors import DomainError, Unavailable
from shared.retry import RetryPolicy, until_database_answers

# Counts crashes and deployments.
ATTEMPTS_MAX = 10
PATIENCE = RetryPolicy(attempts_max=4, wait_s_first=2.0)
NOTHING = Report(counts={})

log: structlog.stdlib.BoundLogger = structlog.get_logger("cron")


class JobHandler(Protocol):
    """Code of a job. Must be idempotent, also after a partial execution. A dry run counts without changes."""

    async def carry_out(self, *, is_dry_run: bool) -> Report: ...


@dataclass(frozen=True, slots=True)
class JobRunner:
    jobs: Mapping[str, Job]
    chores: Mapping[str, JobHandler]
    executions: CronExecutions
    patience: RetryPolicy = PATIENCE

    async def carry_out(self, executor: str, job: str, slot: str) -> str:
        """Body of a SystemWorkflow. Raises CancelledError if this worker was fenced."""
        outcome, run = await until_database_answers(
            lambda: self.executions.begin(
                job, datetime.fromisoformat(slot), executor=executor, attempts_max=ATTEMPTS_MAX
            )
        )
        if outcome == "fenced":
            raise asyncio.CancelledError(outcome)
        if run is None or outcome == "ended":
            return outcome
        report, error = (NOTHING, "attempts_exhausted") if outcome == "exhausted" else await self._do(run)
        kept = Report(counts=report.counts, findings=report.findings[:FINDINGS_MAX])
        is_mine = await until_database_answers(lambda: self.executions.finish(run, kept, error=error))
        self._log_end(run, report, error)
        return "done" if is_mine else "ended"

    @staticmethod
    def _log_end(run: CronRun, report: Report, error: str | None) -> None:
        """Counts are logged as one field, because their names may collide with fields of the log line."""
        level = logging.WARNING if report.findings else logging.INFO
        log.log(
            logging.ERROR if error else level,
            "job_failed" if error else "job_completed",
            job=run.job,
            slot=run.slot.isoformat(),
            is_dry_run=run.is_dry_run,
            error=error,
            findings=len(report.findings),
            counts=dict(report.counts),
        )

    async def _do(self, run: CronRun) -> tuple[Report, str | None]:
        job, chore = self.jobs.get(run.job), self.chores.get(run.job)
        if job is None or chore is None:
            return NOTHING, "job_unknown"
        try:
            async with asyncio.timeout(job.time_limit_s):
                return await self._patiently(chore, is_dry_run=run.is_dry_run), None
        except TimeoutError:
            return NOTHING, "time_limit"
        except DomainError as error:
            return NOTHING, error.code
        except Exception:
            log.exception("job_broken", job=run.job)
            return NOTHING, "internal_error"

    async def _patiently(self, chore: JobHandler, *, is_dry_run: bool) -> Report:
        """Retry on ``Unavailable``; safe because handlers are idempotent."""
        attempt = 0
        while True:
            try:
                return await chore.carry_out(is_dry_run=is_dry_run)
            except Unavailable as failure:
                attempt += 1
                if attempt >= self.patience.attempts_max:
                    raise
                await asyncio.sleep(self.patience.wait_s(attempt - 1, failure.retry_after_s))
