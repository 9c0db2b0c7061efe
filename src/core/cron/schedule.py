"""When what is done, in UTC. What each job does is said in ``core.wiring.cron``.

A job may be carried out twice, and by two processes at once: what it does, it does once.
"""

from features.operations.domain.jobs import Job, MissedRule

MINUTE_S, HOUR_S = 60.0, 3_600.0


def _job(name: str, schedule: str, missed: MissedRule, time_limit_s: float, title: str) -> Job:
    return Job(name=name, schedule=schedule, missed=missed, time_limit_s=time_limit_s, title=title)


# fmt: off
JOBS: dict[str, Job] = {job.name: job for job in (
    # name                     minute hour day month weekday  missed    at most       what it is
    _job("monthly-renewal",         "0 3 1 * *",   "latest", 6 * HOUR_S,   "Credits of the new period"),
    _job("renewal-sweep",           "0 3 * * *",   "latest", 6 * HOUR_S,   "The same, for whom a month begins today"),
    _job("daily-cleanup",           "0 2 * * *",   "latest", 6 * HOUR_S,   "Deleted 30 days ago: removed for good"),
    _job("failed-analysis-cleanup", "0 * * * *",   "skip",   30 * MINUTE_S, "Runs that nobody finishes: failed, released"),
    _job("subscription-sync",       "0 */6 * * *", "latest", 2 * HOUR_S,   "Subscriptions as Stripe has them"),
    _job("invoice-reconciliation",  "0 4 * * *",   "latest", 2 * HOUR_S,   "Invoices as Stripe has them"),
    _job("lot-expiry",              "*/15 * * * *", "latest", 30 * MINUTE_S, "Credits whose time is over: written off"),
    _job("cache-expiry",            "30 * * * *",  "skip",   30 * MINUTE_S, "Remembered answers whose time is over"),
    _job("progress-expiry",         "*/30 * * * *", "skip",  30 * MINUTE_S, "Traces of requests and of ended runs"),
)}
# fmt: on
