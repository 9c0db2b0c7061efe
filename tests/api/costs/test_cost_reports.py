"""Cost reports for operators over HTTP: contents, windows and validation."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from shared.llm import CostOwner
from tests.conftest import make_tenant
from tests.unit.features.costs.calls import model_call, scrape

REPORTS = ("spenders", "latency", "refusals", "cache", "success", "costs")
# In the past and far apart, so that rows of other tests are not inside the window.
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
POINT = "insert into traffic.data_points values ($1, $2, null, null, $3, '{}')"
REQUEST = "insert into traffic.requests values ($1, 'GET', '/slow', 500, 7.5, null, null, null, 'r')"


@pytest.fixture
def report(client, operator):
    """Requests a report."""

    async def ask(name, **query):
        return await client.get(f"/v1/admin/reports/{name}", headers=operator, params=query)

    return ask


@pytest.fixture
def window():
    since = LONG_AGO + timedelta(days=hash(uuid4()) % 7_000)
    return {"since": since.isoformat(), "until": (since + timedelta(days=1)).isoformat()}


def inside(window):
    return datetime.fromisoformat(window["since"]) + timedelta(hours=2)


@pytest.mark.parametrize("name", REPORTS)
async def test_default_window_is_the_last_thirty_days(report, name):
    answer = await report(name)

    body = answer.json()
    since, until = (datetime.fromisoformat(body[name]) for name in ("since", "until"))
    assert answer.status_code == 200
    assert until - since == timedelta(days=30)
    assert abs(until - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.parametrize("name", REPORTS)
async def test_window_without_data_gives_an_empty_list(report, name):
    answer = await report(name, since="1999-01-01T00:00:00Z", until="1999-01-02T00:00:00Z")

    assert (answer.status_code, answer.json()["items"], answer.json()["is_complete"]) == (200, [], True)


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize(
    ("since", "until", "code"),
    [
        ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "window_invalid"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "window_invalid"),
        ("2026-01-01T00:00:00Z", "2026-04-01T00:00:01Z", "window_invalid"),
        ("0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z", "window_invalid"),
        (None, "0001-01-02T00:00:00Z", "window_invalid"),
        ("2026-01-01T00:00:00", "2026-01-02T00:00:00Z", "timestamp_invalid"),
    ],
)
async def test_invalid_or_too_long_window_is_rejected(report, name, since, until, code):
    answer = await report(name, **({"since": since} if since else {}), until=until)

    assert (answer.status_code, answer.json()["code"]) == (422, code)


@pytest.mark.parametrize("name", REPORTS)
async def test_window_of_ninety_days_is_accepted(report, name):
    answer = await report(name, since="2026-01-01T00:00:00Z", until="2026-04-01T00:00:00Z")

    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("spenders", {"share": "0"}),
        ("spenders", {"share": "101"}),
        ("cache", {"by": "minute"}),
        ("costs", {"since": "yesterday"}),
    ],
)
async def test_undocumented_parameter_value_is_rejected(report, name, query):
    assert (await report(name, **query)).status_code == 400


async def test_hourly_report_has_a_shorter_maximum_window(report):
    window = {"since": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:01Z"}

    assert (await report("cache", by="day", **window)).status_code == 200
    answer = await report("cache", by="hour", **window)
    assert (answer.status_code, answer.json()["code"]) == (422, "window_invalid")
    assert "31 days" in answer.json()["detail"]


@pytest.mark.parametrize("name", REPORTS)
async def test_a_tenant_sees_no_report(client, bearer, name):
    answer = await client.get(f"/v1/admin/reports/{name}", headers=bearer())

    assert answer.status_code == 403


async def test_spenders_are_reported_in_dollars_and_percent(application, report, owner, window):
    large, small = await make_tenant(owner), await make_tenant(owner)
    for tenant, cost in ((large, 750_000_000), (small, 250_000_000)):
        cost_owner = CostOwner(account_id=tenant.account_id, user_id=tenant.caller.user_id)
        await application.resources.costs.calls.record_model_call(
            model_call(cost, at=inside(window), cost_owner=cost_owner)
        )

    answer = await report("spenders", share=70, **window)

    body = answer.json()
    assert body["cost_dollars"] == 1.0
    assert body["items"] == [
        {
            "account_id": str(large.account_id),
            "calls": 1,
            "calls_unpriced": 0,
            "cost_dollars": 0.75,
            "share_percent": 75.0,
            "cumulative_percent": 75.0,
            "users": [{"user_id": str(large.caller.user_id), "cost_dollars": 0.75}],
        }
    ]
    assert len((await report("spenders", share=76, **window)).json()["items"]) == 2


async def test_latency_cache_and_success_are_reported_in_their_own_units(report, owner, window):
    at = inside(window)
    await owner.execute(REQUEST, at)
    for outcome in ("hit", "miss", "miss", "miss"):
        await owner.execute(POINT, at, "profile_cache", ["natgeo", "fresh", outcome])
    for outcome in ("completed", "failed", "cancelled"):
        await owner.execute(POINT, at, "analysis", ["run", "natgeo", "deep", outcome])
    await owner.execute(POINT, at, "analysis", ["run", "natgeo", "light", "cancelled"])

    (latency,) = (await report("latency", **window)).json()["items"]
    (cache,) = (await report("cache", by="hour", **window)).json()["items"]
    deep, light = (await report("success", **window)).json()["items"]

    assert latency == {
        "method": "GET",
        "route": "/slow",
        "requests": 1,
        "failures": 1,
        "p50_ms": 7.5,
        "p95_ms": 7.5,
    }
    assert (cache["hit_percent"], datetime.fromisoformat(cache["at"])) == (25.0, at)
    assert (deep["success_percent"], light["success_percent"]) == (50.0, None)


async def test_refusals_are_reported_with_their_reason(report, owner, window):
    count = "insert into traffic.request_counts values ($1, 'GET', '', 404, 'route_not_found', 12)"
    await owner.execute(count, inside(window))

    (line,) = (await report("refusals", **window)).json()["items"]

    assert line == {
        "method": "GET",
        "route": "",
        "status": 404,
        "code": "route_not_found",
        "requests": 12,
        "requests_without_account": 12,
    }


async def test_costs_of_a_run_are_reported_with_its_margin(application, client, operator, owner):
    tenant, run_id = await make_tenant(owner), uuid4()
    cost_owner = CostOwner(account_id=tenant.account_id, run_id=run_id)
    await application.resources.costs.calls.record_model_call(model_call(12_000_000, cost_owner=cost_owner))
    await application.resources.costs.calls.record_scrape(scrape(None, cost_owner=cost_owner))

    answer = await client.get(f"/v1/admin/runs/{run_id}/costs", headers=operator)

    assert answer.json() == {
        "run_id": str(run_id),
        "apify": {"calls": 1, "calls_unpriced": 1, "cost_dollars": 0.0, "duration_ms": 8_000.0},
        "ai": {"calls": 1, "calls_unpriced": 0, "cost_dollars": 0.012, "duration_ms": 1_500.0},
        "total": {"calls": 2, "calls_unpriced": 1, "cost_dollars": 0.012, "duration_ms": 9_500.0},
        "margins": {"revenue_dollars": 0.0, "gross_dollars": -0.012, "percent": None, "is_at_most": True},
    }


async def test_unknown_run_is_not_found(client, operator):
    run_id = uuid4()

    answer = await client.get(f"/v1/admin/runs/{run_id}/costs", headers=operator)

    assert (answer.status_code, answer.json()["code"]) == (404, "run_without_costs")
    assert str(run_id) in answer.json()["detail"]


async def test_application_has_the_prices_of_the_price_list(application):
    spent = application.resources.costs.prices.of_units("apify", "run", 1, datetime.now(UTC))

    assert spent == 3_000_000
