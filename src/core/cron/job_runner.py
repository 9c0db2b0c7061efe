"""Execution of one claimed slot of a cron job."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import structlog

from features.billing.domain.job_summary import JobSummary
from features.operations.application.ports import CronExecutions
from features.operations.domain.jobs import FINDINGS_MAX, CronRun, Job, JobFinding, Report
from shared.errors import DomainError, Unavailable
from shared.retry import RetryPolicy, until_database_answers

MINUTE_S, HOUR_S = 60.0, 3_600.0
# Counts crashes and deployments.
ATTEMPTS_MAX = 10
RETRY = RetryPolicy(attempts_max=4, wait_s_first=2.0)
NOTHING = Report(counts={})

log: structlog.stdlib.BoundLogger = structlog.get_logger("cron")


JobHandler = Callable[..., Awaitable[Report]]
"""Code of a job; receives the keyword ``is_dry_run``. A dry run counts without changes. A job may be executed
twice, and by two processes concurrently, so its handler must be idempotent, also after a partial execution.
"""


def summarized(handler: Callable[..., Awaitable[JobSummary]]) -> JobHandler:
    """Return a handler that reports the billing slice's ``JobSummary``."""

    async def run(*, is_dry_run: bool) -> Report:
        summary = await handler(is_dry_run=is_dry_run)
        return Report(
            counts=dict(summary.counts),
            findings=tuple(JobFinding(kind=one.kind, subject=one.subject) for one in summary.discrepancies),
        )

    return run


@dataclass(frozen=True, slots=True)
class JobRunner:
    jobs: Mapping[str, Job]
    handlers: Mapping[str, JobHandler]
    executions: CronExecutions
    retry: RetryPolicy = RETRY

    async def run(self, executor: str, job: str, slot: str) -> str:
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
        report, error = (
            (NOTHING, "attempts_exhausted") if outcome == "exhausted" else await self._execute(run)
        )
        stored = Report(counts=report.counts, findings=report.findings[:FINDINGS_MAX])
        is_mine = await until_database_answers(lambda: self.executions.finish(run, stored, error=error))
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

    async def _execute(self, run: CronRun) -> tuple[Report, str | None]:
        job, handler = self.jobs.get(run.job), self.handlers.get(run.job)
        if job is None or handler is None:
            return NOTHING, "job_unknown"
        try:
            async with asyncio.timeout(job.time_limit_s):
                return await self._with_retries(handler, is_dry_run=run.is_dry_run), None
        except TimeoutError:
            return NOTHING, "time_limit"
        except DomainError as error:
            return NOTHING, error.code
        except Exception:
            log.exception("job_handler_failed", job=run.job)
            return NOTHING, "internal_error"

    async def _with_retries(self, handler: JobHandler, *, is_dry_run: bool) -> Report:
        """Retry on ``Unavailable``; safe because handlers are idempotent."""
        attempt = 0
        while True:
            try:
                return await handler(is_dry_run=is_dry_run)
            except Unavailable as failure:
                attempt += 1
                if attempt >= self.retry.attempts_max:
                    raise
                await asyncio.sleep(self.retry.wait_s(attempt - 1, failure.retry_after_s))
