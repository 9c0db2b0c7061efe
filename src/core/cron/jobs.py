"""Table of cron jobs and their schedules in UTC; ``core.wiring.cron`` maps them to handlers.

A job may be executed twice, and by two processes concurrently, so its handler must be idempotent.
"""

from features.operations.domain.jobs import Job, MissedRule

MINUTE_S, HOUR_S = 60.0, 3_600.0


def _job(schedule: str, name: str, missed: MissedRule, time_limit_s: float, title: str) -> Job:
    return Job(name=name, schedule=schedule, missed=missed, time_limit_s=time_limit_s, title=title)


# fmt: off
JOBS: dict[str, Job] = {job.name: job for job in (
    # minute, hour, day, month, weekday; name; rule for missed slots; time limit; title
    _job("0 3 1 * *", "monthly-renewal", "latest", 6 * HOUR_S, "Credits of new periods"),
    _job("0 3 * * *", "renewal-sweep", "latest", 6 * HOUR_S, "The same, for those whose month begins today"),
    _job("0 2 * * *", "daily-cleanup", "latest", 6 * HOUR_S, "What was deleted 30 days ago, for good"),
    _job("0 * * * *", "failed-analysis-cleanup", "skip", 30 * MINUTE_S, "Runs that nobody will finish"),
    _job("0 */6 * * *", "subscription-sync", "latest", 2 * HOUR_S, "Subscriptions as Stripe has them"),
    _job("0 4 * * *", "invoice-reconciliation", "latest", 2 * HOUR_S, "Invoices as Stripe has them"),
    _job("10 * * * *", "missing-events", "latest", 30 * MINUTE_S, "Events of Stripe's that did not arrive"),
    _job("*/15 * * * *", "lot-expiry", "latest", 30 * MINUTE_S, "Credits whose time is over"),
    _job("30 * * * *", "cache-expiry", "skip", 30 * MINUTE_S, "Remembered answers whose time is over"),
    _job("*/30 * * * *", "progress-expiry", "skip", 30 * MINUTE_S, "Traces of requests and of ended runs"),
)}
# fmt: on
