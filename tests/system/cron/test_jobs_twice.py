"""Idempotence of every job under concurrent and repeated execution (T17)."""

import asyncio
import uuid

import pytest

from features.operations.domain.jobs import Report
from tests.conftest import make_tenant
from tests.integration.database.rows import NEW_MODEL_CALL, NEW_PROFILE, new_analysis
from tests.support.cron_jobs import JOBS, job_handlers

DUE_ACCOUNTS = """
with made as (
    insert into accounts (name, created_at)
    select 'Due', date_trunc('second', now()) - interval '100 days' - n * interval '1 hour'
    from generate_series(1, 300) as n
    returning id
), books as (insert into credit_accounts (account_id) select id from made)
select array_agg(id) from made
"""
# The subscriptions of the signup, three months without a renewal.
MAKE_DUE = """
update subscriptions as s
set renews = true, period_start = s.anchor_at, period_end = billing.period_start(s.anchor_at, 1)
where s.account_id = any ($1)
"""
STATE = """
select s.period_index, s.period_start <= now() and s.period_end > now() as is_now, a.credits_available, (
    select count(*) from subscription_periods as p where p.account_id = s.account_id
) as periods
from subscriptions as s join credit_accounts as a on a.account_id = s.account_id
where s.account_id = any ($1)
"""
DELETE_BUSINESSES = """
update business_profiles set deleted_at = now() - interval '31 days' where account_id = $1
"""
DELETE_ACCOUNT = "update accounts set deleted_at = now() - interval '31 days' where id = $1"
LAPSE = """
with account as (
    update credit_accounts set next_lapse_at = now() - interval '1 hour' where account_id = $1
)
update credit_lots set expires_at = now() - interval '1 hour' where account_id = $1
"""


def both(cron_database, other_database, name):
    return [job_handlers(database)[name] for database in (cron_database, other_database)]


async def at_once(handlers, times=2):
    """Run the handlers concurrently and return the sums of their counts."""
    reports = await asyncio.gather(*(handler(is_dry_run=False) for handler in handlers * times))
    return {name: sum(report.counts.get(name, 0) for report in reports) for name in reports[0].counts}


async def test_renewal_grants_the_current_period_once_and_no_missed_periods(
    cron_owner, cron_database, other_database
):
    ids = await cron_owner.fetchval(DUE_ACCOUNTS)
    await cron_owner.execute(MAKE_DUE, ids)
    renewals = both(cron_database, other_database, "monthly-renewal")
    foreseen = await renewals[0](is_dry_run=True)

    first = await at_once(renewals)
    second = await at_once(both(cron_database, other_database, "renewal-sweep"))

    assert foreseen == Report(counts={"processed": 300, "credits": 3_000})
    assert {name: first[name] for name in ("processed", "succeeded", "credits")} == {
        "processed": 300,
        "succeeded": 300,
        "credits": 3_000,
    }
    assert not second
    rows = await cron_owner.fetch(STATE, ids)
    assert [(row["is_now"], row["credits_available"], row["periods"]) for row in rows] == [
        (True, 10, 1)
    ] * 300
    assert {row["period_index"] for row in rows} <= {3, 4}


@pytest.fixture
async def deleted(cron_owner, cron_database):
    """Three accounts: nothing deleted; a business with its leads deleted 31 days ago; account deleted."""
    await job_handlers(cron_database)["daily-cleanup"](is_dry_run=False)
    tenants = [await make_tenant(cron_owner) for _ in range(3)]
    for tenant in tenants:
        await cron_owner.execute(NEW_PROFILE, tenant.account_id)
        await new_analysis(cron_owner, tenant.account_id)
        await cron_owner.execute(NEW_MODEL_CALL, tenant.account_id, uuid.uuid4())
        await cron_owner.execute(
            "select runs.start($1, gen_random_uuid(), 'x', '{}', 0, 'analysis', 'no_worker')",
            tenant.account_id,
        )
    untouched, business, everything = (tenant.account_id for tenant in tenants)
    await cron_owner.execute(DELETE_BUSINESSES, business)
    await cron_owner.execute(DELETE_ACCOUNT, everything)
    await cron_owner.execute(
        "update ai_usage_logs set created_at = now() - interval '91 days' where account_id = $1", untouched
    )
    return untouched, business, everything


async def rows_left(cron_owner, account_id):
    tables = ("ai_usage_logs", "analyses", "leads", "business_profiles", "runs")
    counts = {
        table: await cron_owner.fetchval(f"select count(*) from {table} where account_id = $1", account_id)
        for table in tables
    }
    counts["accounts"] = await cron_owner.fetchval("select count(*) from accounts where id = $1", account_id)
    return counts


async def test_rows_deleted_a_month_ago_are_purged_and_counted_by_table(
    cron_owner, cron_database, other_database, deleted
):
    untouched, business, everything = deleted
    cleanups = both(cron_database, other_database, "daily-cleanup")
    foreseen = await cleanups[0](is_dry_run=True)

    removed = await at_once(cleanups)
    again = await at_once(cleanups)

    expected = {
        "ai_usage_logs": 1,
        "scrape_logs": 0,
        "analyses": 2,
        "leads": 2,
        "business_profiles": 2,
        "runs": 1,
        "accounts": 1,
        "cron_runs": 0,
        "webhook_messages": 0,
        "webhook_events": 0,
    }
    assert foreseen.counts == removed == expected
    assert set(again.values()) == {0}
    here = {"ai_usage_logs": 1, "analyses": 1, "leads": 1, "business_profiles": 1, "runs": 1, "accounts": 1}
    assert await rows_left(cron_owner, untouched) == {**here, "ai_usage_logs": 0}
    assert await rows_left(cron_owner, business) == {
        **here,
        "analyses": 0,
        "leads": 0,
        "business_profiles": 0,
    }
    assert set((await rows_left(cron_owner, everything)).values()) == {0}


async def test_deleted_account_with_an_active_subscription_is_not_purged(cron_owner, cron_database):
    tenant = await make_tenant(cron_owner)
    await cron_owner.execute(
        "select billing.apply_subscription($1, $2, 'si_1', 'growth', 'active', now(), now(),"
        " now() + interval '1 month', null, null, clock_timestamp(), true)",
        *(tenant.account_id, f"sub_{uuid.uuid4().hex}"),
    )
    await cron_owner.execute(DELETE_ACCOUNT, tenant.account_id)
    cleanup = job_handlers(cron_database)["daily-cleanup"]

    await cleanup(is_dry_run=False)
    kept = await rows_left(cron_owner, tenant.account_id)
    await cron_owner.execute(
        "update subscriptions set status = 'ended', ended_at = now() where account_id = $1", tenant.account_id
    )
    await cleanup(is_dry_run=False)

    assert kept["accounts"] == 1
    assert (await rows_left(cron_owner, tenant.account_id))["accounts"] == 0


async def test_expired_credits_are_written_off_once(cron_owner, cron_database, other_database):
    tenant = await make_tenant(cron_owner)
    await cron_owner.execute(
        "select ledger.grant_credits($1, 7, 'g', 'admin_grant', now() + interval '1 hour')", tenant.account_id
    )
    await cron_owner.execute(LAPSE, tenant.account_id)
    expiries = both(cron_database, other_database, "lot-expiry")
    foreseen = await expiries[0](is_dry_run=True)

    assert foreseen.counts == {"accounts": 1, "credits_expired": 7}
    assert await at_once(expiries) == {"accounts": 1, "credits_expired": 7}
    assert await at_once(expiries) == {"accounts": 0, "credits_expired": 0}
    assert (
        await cron_owner.fetch("select * from ledger.audit() where account_id = $1", tenant.account_id) == []
    )


async def test_stalled_run_is_failed_and_its_hold_released_once(cron_owner, cron_database, other_database):
    tenant = await make_tenant(cron_owner)
    await cron_owner.execute("select ledger.grant_credits($1, 5, 'g', 'admin_grant')", tenant.account_id)
    run_id = uuid.uuid4()
    await cron_owner.execute(
        "select runs.start($1, $2, 'x', '{}', 5, 'analysis', 'no_worker')", tenant.account_id, run_id
    )
    async with cron_owner.transaction():
        await cron_owner.execute("set local session_replication_role = 'replica'")
        await cron_owner.execute(
            "update runs set status = 'processing', admitted_at = now() - interval '1 hour',"
            " updated_at = now() - interval '16 minutes' where id = $1",
            run_id,
        )
    cleanups = both(cron_database, other_database, "failed-analysis-cleanup")
    foreseen = await cleanups[0](is_dry_run=True)

    counted = await at_once(cleanups)

    assert foreseen.counts["runs_failed"] == counted["runs_failed"] == 1
    assert (await at_once(cleanups))["runs_failed"] == 0
    row = await cron_owner.fetchrow("select status, error from runs where id = $1", run_id)
    assert tuple(row) == ("failed", "timeout")
    credits_left = await cron_owner.fetchrow(
        "select credits_available, credits_held from credit_accounts where account_id = $1", tenant.account_id
    )
    assert tuple(credits_left) == (5, 0)


NEW_ANSWER = """
insert into completion_cache (
    account_id, completion_key, completion, is_compressed, provider, model, is_simulated, expires_at
) values (
    $1, sha256(random()::text::bytea), '{}', false, 'openai', 'm', true, now() + make_interval(hours => $2)
)
"""
NEW_REQUEST = """
insert into traffic.requests values (
    now() - interval '90 days' + make_interval(hours => $2), 'GET', '/', 200, 1, $1, 'user', null, 'r'
)
"""
NEW_COUNT = """
insert into traffic.request_counts values (
    now() - interval '90 days' + make_interval(hours => $2), 'GET', $1::uuid::text, 404, 'route_not_found', 9
)
"""
NEW_KEY = """
insert into traffic.idempotency_keys (id, fingerprint, attempt, effect_id, locked_until, created_at)
values (
    sha256(random()::text::bytea), sha256('f'), $1, $1, now(),
    now() - interval '25 hours' + make_interval(hours => $2)
)
"""
NEW_WINDOW = """
insert into traffic.rate_windows values (
    concat($1::uuid, $2::int), 0, 0, array_fill(0, array[61]), now() + make_interval(hours => $2)
)
"""
NEW_POINT = """
insert into traffic.data_points values (
    now() - interval '90 days' + make_interval(hours => $2), 'kind', $1, null, '{}', '{}'
)
"""
NEW_ANONYMOUS = """
with analysis as (
    insert into anonymous_analyses (run_id, expires_at)
    values (gen_random_uuid(), now() + make_interval(hours => $2)) returning run_id, expires_at
)
insert into anonymous_tokens select sha256(($1::uuid::text || $2)::bytea), run_id, expires_at from analysis
"""
TRACES = [
    ("cache-expiry", NEW_ANSWER, "completion_cache"),
    ("cache-expiry", NEW_ANONYMOUS, "anonymous_analyses"),
    ("progress-expiry", NEW_KEY, "idempotency_keys"),
    ("progress-expiry", NEW_WINDOW, "rate_windows"),
    ("progress-expiry", NEW_POINT, "data_points"),
    ("progress-expiry", NEW_REQUEST, "requests"),
    ("progress-expiry", NEW_COUNT, "request_counts"),
]


@pytest.mark.parametrize(("name", "statement", "table"), TRACES)
async def test_expired_rows_are_purged_once(
    cron_owner, cron_database, other_database, name, statement, table
):
    tenant = await make_tenant(cron_owner)
    for hours in (-1, -2, 1):
        await cron_owner.execute(statement, tenant.account_id, hours)
    handlers = both(cron_database, other_database, name)
    foreseen = await handlers[0](is_dry_run=True)

    removed = await at_once(handlers)

    assert foreseen.counts[table] == removed[table] == 2
    assert (await at_once(handlers))[table] == 0


@pytest.mark.parametrize("name", JOBS)
async def test_dry_run_of_any_job_changes_nothing(cron_owner, cron_database, deleted, name):
    del deleted
    before = await everything_in(cron_owner)

    await job_handlers(cron_database)[name](is_dry_run=True)

    assert await everything_in(cron_owner) == before


async def everything_in(cron_owner):
    tables = await cron_owner.fetch(
        "select format('%I.%I', schemaname, tablename) as name from pg_tables"
        " where schemaname in ('public', 'traffic') order by 1"
    )
    return {
        row["name"]: await cron_owner.fetchval(
            f"select md5(coalesce(string_agg(t::text, '|' order by t::text), '')) from {row['name']} as t"
        )
        for row in tables
    }
