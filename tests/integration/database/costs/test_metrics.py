"""Data points: written in the background, stored for three months."""

import math
from uuid import uuid4

import pytest

from features.analysis.application.ports import CacheRecord
from infrastructure.database.costs.metrics import AnalysisMetrics, PostgresMetrics, ProfileCacheMetrics
from shared.ids import UserId
from shared.llm import CostOwner

POINTS = "select kind, account_id, user_id, blobs, doubles from traffic.data_points where user_id = $1"


@pytest.fixture
async def points(database):
    points = PostgresMetrics(database)
    yield points
    await points.close()


@pytest.fixture
def cost_owner(tenant):
    return CostOwner(account_id=tenant.account_id, user_id=UserId(uuid4()))


async def test_point_has_its_kind_texts_numbers_and_cost_owner(points, owner, cost_owner):
    points.write(
        "k",
        blobs=("a", "b,{}"),
        doubles=(1.5, -2),
        account_id=cost_owner.account_id,
        user_id=cost_owner.user_id,
    )
    points.write("k", blobs=(), doubles=(), user_id=cost_owner.user_id)
    await points.close()

    assert [tuple(row) for row in await owner.fetch(POINTS, cost_owner.user_id)] == [
        ("k", cost_owner.account_id, cost_owner.user_id, ["a", "b,{}"], [1.5, -2.0]),
        ("k", None, cost_owner.user_id, [], []),
    ]


async def test_an_analysis_is_a_point_with_cost_duration_and_score(points, owner, cost_owner):
    run_id = uuid4()

    AnalysisMetrics(points)(
        run_id=run_id,
        username="natgeo",
        analysis_type="deep",
        outcome="completed",
        cost_nanodollars=12_500_000,
        duration_ms=41_000.0,
        score=87,
        cost_owner=cost_owner,
    )
    await points.close()

    (row,) = await owner.fetch(POINTS, cost_owner.user_id)
    assert (row["kind"], row["account_id"]) == ("analysis", cost_owner.account_id)
    assert row["blobs"] == [str(run_id), "natgeo", "deep", "completed"]
    assert row["doubles"] == [0.0125, 41_000.0, 87.0]


@pytest.mark.parametrize(
    ("is_hit", "age_s", "blobs"),
    [(True, 60.5, ["natgeo", "fresh", "hit"]), (False, None, ["natgeo", "fresh", "miss"])],
)
async def test_profile_cache_lookup_is_a_point(points, owner, cost_owner, is_hit, age_s, blobs):
    record: CacheRecord = ProfileCacheMetrics(points)

    record(is_hit=is_hit, reason="fresh", username="natgeo", age_s=age_s, cost_owner=cost_owner)
    await points.close()

    (row,) = await owner.fetch(POINTS, cost_owner.user_id)
    assert (row["kind"], row["blobs"], row["doubles"]) == ("profile_cache", blobs, [age_s])


async def test_invalid_point_does_not_prevent_the_others(points, owner, cost_owner):
    points.write(
        "k\0",
        blobs=("\0", "\ud800", "ü" * 5_000, '"}]'),
        doubles=(math.nan, math.inf, -math.inf, None, 1.0),
        user_id=cost_owner.user_id,
    )
    await points.close()

    (row,) = await owner.fetch(POINTS, cost_owner.user_id)
    assert (row["kind"], row["blobs"][:2], row["blobs"][3]) == ("k", ["", "?"], '"}]')
    assert row["doubles"] == [None, None, None, None, 1.0]
