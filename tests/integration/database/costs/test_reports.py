"""Operators' reports, computed from recorded calls, requests and runs."""

from collections import Counter
from datetime import date, timedelta
from uuid import uuid4

import asyncpg
import pytest

from features.costs.application.run_costs import RunCosts
from features.costs.domain.reports import Window
from infrastructure.database.costs.provider_calls import PostgresCallLog
from infrastructure.database.costs.reports import PostgresCostFigures, PostgresRunLedger
from infrastructure.monitoring.cost_tracker import CostTracker
from shared.ids import UserId
from shared.llm import CostOwner, Usage
from tests.conftest import copy_of, make_tenant
from tests.integration.database.costs.test_price_file import BOOK
from tests.support import NOON, dual_client
from tests.unit.features.costs.calls import model_call, scrape

WINDOW = Window(since=NOON - timedelta(days=1), until=NOON + timedelta(days=1))
EMPTY = Window(since=NOON - timedelta(days=60), until=NOON - timedelta(days=50))
REQUEST = "insert into traffic.requests values ($1, $2, $3, $4, $5, null, null, null, 'r')"
LOGGED = "insert into traffic.requests values ($1, $2, $3, $4, 1, $5, 'user', null, 'r', $6)"
COUNT = "insert into traffic.request_counts values ($1, $2, $3, $4, $5, $6)"
POINT = "insert into traffic.data_points values ($1, $2, null, null, $3, '{}')"


@pytest.fixture(scope="module")
async def addresses(cluster, template):
    """A separate database, because reports cover all accounts."""
    async with copy_of(cluster, template) as addresses:
        yield addresses


@pytest.fixture(scope="module")
async def database(addresses):
    async with dual_client(addresses) as database:
        yield database


@pytest.fixture(scope="module")
async def owner(addresses):
    connection = await asyncpg.connect(addresses.owner)
    yield connection
    await connection.close()


@pytest.fixture(autouse=True)
async def cleared(owner):
    await owner.execute(
        "truncate ai_usage_logs, scrape_logs, traffic.requests, traffic.request_counts, traffic.data_points"
    )


@pytest.fixture
async def calls(database):
    log = PostgresCallLog(database)
    yield log
    await log.close()


@pytest.fixture
def figures(database):
    return PostgresCostFigures(database)


async def spend(calls, owner, *costs):
    """Creates an account with calls of these costs, all by one user."""
    tenant = await make_tenant(owner)
    cost_owner = CostOwner(account_id=tenant.account_id, user_id=tenant.caller.user_id)
    for cost in costs:
        await calls.record_model_call(model_call(cost, cost_owner=cost_owner))
    return tenant


def shares(found):
    return [(one.account_id, one.cost_nanodollars, one.cumulative_nanodollars) for one in found.accounts]


async def test_accounts_that_cause_a_share_of_the_cost_are_listed_largest_first(calls, owner, figures):
    small = await spend(calls, owner, 5)
    large = await spend(calls, owner, 30, 30)
    middle = await spend(calls, owner, 20, None)
    await spend(calls, owner, 15)

    found = await figures.spenders(WINDOW, share_percent=80, lines_max=10)

    assert found.cost_nanodollars == 100
    assert shares(found) == [(large.account_id, 60, 60), (middle.account_id, 20, 80)]
    assert (found.accounts[1].calls, found.accounts[1].calls_unpriced) == (2, 1)
    all_owners = await figures.spenders(WINDOW, share_percent=100, lines_max=10)
    assert shares(all_owners)[-1] == (small.account_id, 5, 100)
    just_above = await figures.spenders(WINDOW, share_percent=81, lines_max=10)
    assert len(just_above.accounts) == 3
    assert len((await figures.spenders(WINDOW, share_percent=100, lines_max=2)).accounts) == 2


async def test_users_of_an_account_are_listed_with_their_cost(calls, owner, figures):
    tenant = await spend(calls, owner, 5)
    colleague = UserId(uuid4())
    for user_id, cost in ((colleague, 7), (None, 1)):
        cost_owner = CostOwner(account_id=tenant.account_id, user_id=user_id)
        await calls.record_model_call(model_call(cost, cost_owner=cost_owner))

    (account,) = (await figures.spenders(WINDOW, share_percent=80, lines_max=10)).accounts

    assert [(user.user_id, user.cost_nanodollars) for user in account.users] == [
        (colleague, 7),
        (tenant.caller.user_id, 5),
        (None, 1),
    ]


async def test_cost_without_an_owner_is_reported(calls, figures):
    await calls.record_model_call(model_call(5))

    assert shares(await figures.spenders(WINDOW, share_percent=80, lines_max=10)) == [(None, 5, 5)]


async def test_latency_is_reported_by_method_and_route(owner, figures):
    for number in range(1, 101):
        await owner.execute(REQUEST, NOON, "GET", "/a", 200 if number > 3 else 500, float(number))
    await owner.execute(REQUEST, NOON, "POST", "/a", 499, 7.0)
    await owner.execute(REQUEST, NOON + timedelta(days=2), "GET", "/a", 200, 9_999.0)

    slow, quick = await figures.latencies(WINDOW, lines_max=10)

    assert (slow.method, slow.route, slow.requests, slow.failures) == ("GET", "/a", 100, 3)
    assert (slow.p50_ms, slow.p95_ms) == (pytest.approx(50.5), pytest.approx(95.05))
    assert (quick.method, quick.p95_ms, quick.failures) == ("POST", 7.0, 0)


async def test_latency_includes_requests_that_are_only_counted(owner, figures):
    for duration_ms in (10.0, 30.0):
        await owner.execute(REQUEST, NOON, "GET", "/a", 200, duration_ms)
    for minute, route, status, code, requests in (
        (NOON, "/a", 401, "token_missing", 40),
        (NOON + timedelta(minutes=1), "/a", 503, "status_503", 2),
        (NOON, "", 404, "route_not_found", 500),
        (WINDOW.until, "/a", 401, "token_missing", 1_000),
        (WINDOW.since - timedelta(minutes=1), "/a", 401, "token_missing", 1_000),
    ):
        await owner.execute(COUNT, minute, "GET", route, status, code, requests)

    known, unknown = await figures.latencies(WINDOW, lines_max=10)

    assert (known.route, known.requests, known.failures) == ("/a", 2 + 40 + 2, 2)
    assert (known.p50_ms, known.p95_ms) == (20.0, pytest.approx(29.0))
    assert (unknown.route, unknown.requests, unknown.failures) == ("", 500, 0)
    assert (unknown.p50_ms, unknown.p95_ms) == (None, None)


async def test_refusals_are_reported_by_route_status_and_reason(owner, figures):
    """The expected sums are computed from the rows in Python."""
    rows = [
        (minutes, method, f"/{status % 3}", status, f"code_{status}", requests)
        for minutes, requests in ((0, 1), (1, 20), (2, 300))
        for method in ("GET", "POST")
        for status in (200, 401, 404, 429)
    ]
    for minutes, *rest in rows:
        await owner.execute(COUNT, NOON + timedelta(minutes=minutes), *rest)
    expected = Counter()
    for _, method, route, status, code, requests in rows:
        expected[method, route, status, code] += requests * (status >= 400)
    for _ in range(4):
        tenant = await make_tenant(owner)
        await owner.execute(LOGGED, NOON, "GET", "/2", 401, tenant.account_id, "code_401")
        await owner.execute(LOGGED, NOON, "GET", "/2", 200, tenant.account_id, None)

    lines = await figures.refusals(WINDOW, lines_max=10)

    found = {(one.method, one.route, one.status, one.code): one.requests_without_account for one in lines}
    assert found == {key: requests for key, requests in expected.items() if requests}
    assert [(one.requests, one.requests_without_account) for one in lines] == [(325, 321)] + [(321, 321)] * 5
    assert len(await figures.refusals(WINDOW, lines_max=2)) == 2


@pytest.mark.parametrize(("step", "counts"), [("hour", [(1, 0), (1, 1)]), ("day", [(2, 1)])])
async def test_cache_hit_rate_of_profiles_is_reported_by_hour_or_day(owner, figures, step, counts):
    for minutes, hit in ((0, "hit"), (30, "miss"), (70, "hit")):
        blobs = ["natgeo", "fresh", hit]
        await owner.execute(POINT, NOON + timedelta(minutes=minutes), "profile_cache", blobs)
    await owner.execute(POINT, NOON, "other", ["a", "b", "hit"])

    rates = await figures.cache_rates(WINDOW, step=step, lines_max=10)

    assert [(rate.hits, rate.misses) for rate in rates] == counts
    assert {rate.cache for rate in rates} == {"profiles"}
    assert rates[-1].at == (NOON if step == "hour" else NOON.replace(hour=0))


async def test_completion_counts_once_whatever_its_number_of_attempts(calls, figures):
    question = uuid4()
    await calls.record_model_call(model_call(1, call_id=question, outcome="timeout"))
    await calls.record_model_call(model_call(1, call_id=question, attempt=2))
    await calls.record_model_call(model_call(0, cache="exact"))
    await calls.record_model_call(model_call(0, cache="gateway"))
    await calls.record_model_call(model_call(0, outcome="skipped"))

    (rate,) = await figures.cache_rates(WINDOW, step="day", lines_max=10)

    assert (rate.cache, rate.hits, rate.misses) == ("answers", 2, 1)


async def test_success_of_analyses_is_reported_by_day_and_type(owner, figures):
    outcomes = [("deep", "completed"), ("deep", "completed"), ("deep", "failed"), ("light", "cancelled")]
    for analysis_type, outcome in outcomes:
        await owner.execute(POINT, NOON, "analysis", ["run", "natgeo", analysis_type, outcome])

    rates = await figures.success_rates(WINDOW, lines_max=10)

    assert [
        (rate.day, rate.analysis_type, rate.completed, rate.failed, rate.cancelled) for rate in rates
    ] == [
        (NOON.date(), "deep", 2, 1, 0),
        (NOON.date(), "light", 0, 0, 1),
    ]


async def test_costs_are_reported_by_day_provider_model_and_task(calls, figures):
    usage = Usage(tokens_in=100, tokens_cached=60, tokens_out=10)
    await calls.record_model_call(model_call(5, usage=usage))
    await calls.record_model_call(model_call(None, usage=usage, outcome="timeout"))
    await calls.record_model_call(model_call(0, usage=Usage(), cache="exact"))
    await calls.record_model_call(model_call(7, provider="anthropic", model="claude", task="deep"))
    await calls.record_model_call(model_call(9, at=NOON - timedelta(hours=13)))
    await calls.record_scrape(scrape(6, outcome="private"))
    await calls.record_scrape(scrape(None, outcome="timeout"))

    lines = await figures.costs(WINDOW, lines_max=10)

    assert [(line.day, line.provider, line.task, line.cost_nanodollars) for line in lines] == [
        (NOON.date(), "anthropic", "deep", 7),
        (NOON.date(), "apify", "scrape", 6),
        (NOON.date(), "openai", "light", 5),
        (date(2025, 12, 31), "openai", "light", 9),
    ]
    light = lines[2]
    assert (light.calls, light.calls_cached, light.calls_failed, light.calls_unpriced) == (3, 1, 1, 1)
    assert (light.tokens_in, light.tokens_cached, light.tokens_out) == (200, 120, 20)
    assert (lines[1].calls, lines[1].calls_failed, lines[1].calls_unpriced) == (2, 1, 1)


async def test_reports_without_data_are_empty(figures):
    assert (await figures.spenders(EMPTY, share_percent=80, lines_max=10)).accounts == []
    assert await figures.latencies(EMPTY, lines_max=10) == []
    assert await figures.refusals(EMPTY, lines_max=10) == []
    assert await figures.cache_rates(EMPTY, step="day", lines_max=10) == []
    assert await figures.success_rates(EMPTY, lines_max=10) == []
    assert await figures.costs(EMPTY, lines_max=10) == []


async def test_end_of_the_window_is_exclusive(calls, figures):
    await calls.record_model_call(model_call(1, at=WINDOW.until))
    await calls.record_model_call(model_call(2, at=WINDOW.since))

    assert [line.cost_nanodollars for line in await figures.costs(WINDOW, lines_max=10)] == [2]


async def test_breakdown_of_a_run_contains_its_recorded_calls(addresses, owner, tenant):
    """Another process, which has only the database, computes the costs."""
    run_id = uuid4()
    cost_owner = CostOwner(account_id=tenant.account_id, run_id=run_id)
    await owner.execute("select ledger.grant_credits($1, 10, 'g', 'admin_grant')", tenant.account_id)
    await owner.execute("select ledger.place_hold($1, 5, $2, 'analysis')", tenant.account_id, f"run:{run_id}")
    await owner.execute("select ledger.settle_hold($1, $2, 5)", tenant.account_id, f"run:{run_id}")
    async with dual_client(addresses) as database:
        log = PostgresCallLog(database)
        for call in (model_call(5, cost_owner=cost_owner), model_call(None, cost_owner=cost_owner)):
            await log.record_model_call(call)
        for call in (scrape(3_000_000, cost_owner=cost_owner), scrape(1, cost_owner=cost_owner)):
            await log.record_scrape(call)
        await log.record_model_call(model_call(1_000, cost_owner=CostOwner(run_id=uuid4())))

    async with dual_client(addresses) as database:
        tracker = CostTracker(PostgresCallLog(database), BOOK, PostgresRunLedger(database))
        found = await RunCosts(tracker, 970_000_000).breakdown(run_id)

    assert (found.ai.calls, found.ai.calls_unpriced, found.ai.cost_nanodollars) == (2, 1, 5)
    assert (found.apify.calls, found.apify.cost_nanodollars) == (2, 3_000_001)
    assert found.margins.revenue_nanodollars == 4_850_000_000
