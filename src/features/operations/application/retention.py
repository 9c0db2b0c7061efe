"""Retention jobs. All are idempotent and safe to run concurrently."""

from dataclasses import dataclass

from features.operations.application.ports import (
    CronExecutions,
    LotExpiry,
    Retention,
    RetentionPreview,
    StalledRuns,
)
from features.operations.domain.jobs import Report
from features.operations.domain.retention import RetentionRule


@dataclass(frozen=True, slots=True)
class Purge:
    """Deletes expired rows for good in short transactions, one per batch, and counts them per table."""

    rows: Retention
    rules: tuple[RetentionRule, ...]

    async def run(self, *, is_dry_run: bool) -> Report:
        return Report(
            counts={rule.name: await self._purge(rule, is_dry_run=is_dry_run) for rule in self.rules}
        )

    async def _purge(self, rule: RetentionRule, *, is_dry_run: bool) -> int:
        if is_dry_run:
            return await self.rows.count(rule)
        purged = 0
        while batch := await self.rows.purge(rule):
            purged += batch
        return purged


@dataclass(frozen=True, slots=True)
class StalledRunJob:
    """Fails the runs that no worker will finish and releases their holds."""

    runs: StalledRuns
    cron_runs: CronExecutions
    forecast: RetentionPreview

    async def run(self, *, is_dry_run: bool) -> Report:
        if is_dry_run:
            return Report(counts={"runs_failed": await self.forecast.stalled_runs()})
        closed = 0
        while batch := await self.runs.fail_stalled():
            closed += batch
        return Report(counts={"runs_failed": closed, "cron_runs_failed": await self.cron_runs.fail_stalled()})


@dataclass(frozen=True, slots=True)
class LotExpiryJob:
    lots: LotExpiry
    forecast: RetentionPreview

    async def run(self, *, is_dry_run: bool) -> Report:
        accounts, credits_lapsed = await (self.forecast.expired_lots() if is_dry_run else self.lots.expire())
        return Report(counts={"accounts": accounts, "credits_expired": credits_lapsed})


@dataclass(frozen=True, slots=True)
class ProgressExpiry:
    """Deletes the engine's checkpoints of ended runs, and the expired request records."""

    runs: StalledRuns
    traces: Purge

    async def run(self, *, is_dry_run: bool) -> Report:
        report = await self.traces.run(is_dry_run=is_dry_run)
        forgotten = 0
        while not is_dry_run and (batch := await self.runs.purge_ended()):
            forgotten += batch
        return Report(counts={**report.counts, "checkpoints_purged": forgotten})
