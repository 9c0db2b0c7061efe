"""End of an analysis run: outcome, stored result, metrics and alerts."""

from datetime import timedelta
from types import SimpleNamespace
from typing import get_args
from uuid import UUID

import pytest

from features.analysis.application.assemble_result import AnalysisRequest
from features.analysis.application.run_metrics import RunMetrics
from features.analysis.application.save_result import SaveResult
from features.analysis.domain.alerts import alerts
from features.analysis.domain.analysis import NO_BUSINESS
from features.analysis.domain.outcomes import (
    SAVE,
    SCRAPE,
    Cancellation,
    Completion,
    Failure,
    cancellation_outcome,
    completion_outcome,
    failure_outcome,
)
from features.runs.domain.refunds import Outcome
from shared.ids import AccountId, BusinessProfileId, RunId
from tests.support import NOON
from tests.unit.features.analysis.examples import LEAD_KEY, analysis, changed

REQUEST = AnalysisRequest(
    run_id=RunId(UUID(int=1)),
    account_id=AccountId(UUID(int=2)),
    user_id=None,
    username="ana.bakes",
    analysis_type="light",
    business_profile_id=BusinessProfileId(UUID(int=3)),
    is_fresh=False,
)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("profiles_unavailable", "scrape_failure"),
        ("models_unavailable", "provider_failure"),
        ("completion_malformed", "invalid_answer"),
        ("model_refused", "refused_answer"),
        ("business_profile_deleted", "internal_failure"),
    ],
)
def test_outcome_of_a_failure_depends_on_the_error_code(code, outcome):
    assert failure_outcome(code) == outcome


@pytest.mark.parametrize(
    ("step", "outcome"),
    [(SCRAPE, "cancelled_scraping"), ("core", "cancelled_analyzing"), (SAVE, "cancelled_saving")],
)
def test_outcome_of_a_cancellation_depends_on_the_interrupted_step(step, outcome):
    assert cancellation_outcome(step) == outcome


@pytest.mark.parametrize(("is_cached", "outcome"), [(False, "completed"), (True, "completed_from_cache")])
def test_outcome_of_a_completion_tells_whether_the_profile_was_cached(is_cached, outcome):
    assert completion_outcome(is_cached=is_cached) == outcome


def test_refund_policy_has_a_rule_for_every_outcome_of_an_analysis():
    outcomes = {outcome for kind in (Completion, Failure, Cancellation) for outcome in get_args(kind)}

    assert outcomes < set(get_args(Outcome))


class FakeResults:
    def __init__(self):
        self.saved = []

    async def save(self, *saved):
        self.saved.append(saved)


async def test_analysis_for_a_business_is_saved_as_a_whole():
    results, anonymous_results = FakeResults(), FakeResults()
    made = analysis()

    await SaveResult(results, anonymous_results).save(made)

    assert (results.saved, anonymous_results.saved) == ([(made,)], [])


async def test_only_the_public_part_of_an_anonymous_analysis_is_saved():
    results, anonymous_results = FakeResults(), FakeResults()
    made = analysis(changed(LEAD_KEY, business_profile_id=NO_BUSINESS))

    await SaveResult(results, anonymous_results).save(made)

    ((run_id, result),) = anonymous_results.saved
    assert (results.saved, run_id, result.score) == ([], made.id, made.score.total)


class FakeRuns:
    def __init__(self, run):
        self.run = run

    async def find(self, account_id, run_id):
        assert (account_id, run_id) == (REQUEST.account_id, REQUEST.run_id)
        return self.run


def ended_run(**fields):
    usual = {"status": "completed", "cost_nanodollars": 1, "started_at": NOON, "ended_at": NOON}
    return SimpleNamespace(**usual | fields)


async def recorded(run):
    points, alerted = [], []
    metrics = RunMetrics(
        FakeRuns(run), lambda **point: points.append(point), lambda *alert: alerted.append(alert)
    )
    await metrics.record_end(REQUEST, 66)
    return points, alerted


async def test_data_point_has_the_cost_duration_and_score_of_the_run():
    (point,), alerted = await recorded(ended_run(ended_at=NOON + timedelta(seconds=2)))

    assert (point["cost_nanodollars"], point["duration_ms"], point["score"]) == (1, 2_000.0, 66)
    assert (point["run_id"], point["outcome"], point["cost_owner"]) == (
        REQUEST.run_id,
        "completed",
        REQUEST.cost_owner,
    )
    assert alerted == []


async def test_run_without_a_known_cost_raises_an_alert():
    _, ((run_id, analysis_type, alert),) = await recorded(ended_run(cost_nanodollars=None))

    assert (run_id, analysis_type, alert.kind) == (REQUEST.run_id, "light", "unpriced")


@pytest.mark.parametrize("run", [None, ended_run(ended_at=None), ended_run(started_at=None)])
async def test_run_that_is_gone_or_has_not_ended_is_not_recorded(run):
    assert await recorded(run) == ([], [])


def alerts_of(analysis_type="light", *, dollars=0.0, duration_s=0.0, calls_unpriced=0):
    found = alerts(
        analysis_type,
        cost_nanodollars=round(dollars * 1e9),
        calls_unpriced=calls_unpriced,
        duration_ms=duration_s * 1_000,
    )
    return [(alert.kind, alert.level) for alert in found]


@pytest.mark.parametrize(
    ("dollars", "expected"),
    [
        (0.049_999_999, []),
        (0.05, [("cost", "warning")]),
        (0.099_999_999, [("cost", "warning")]),
        (0.10, [("cost", "critical")]),
    ],
)
def test_cost_at_a_limit_raises_an_alert(dollars, expected):
    assert alerts_of(dollars=dollars) == expected


@pytest.mark.parametrize(("analysis_type", "limit_s"), [("light", 60), ("deep", 90), ("xray", 120)])
def test_duration_above_the_limit_raises_an_alert(analysis_type, limit_s):
    assert alerts_of(analysis_type, duration_s=limit_s) == []
    assert alerts_of(analysis_type, duration_s=limit_s + 0.001) == [("duration", "warning")]
    assert alerts_of("other", duration_s=10_000) == []


def test_unpriced_call_raises_a_separate_alert():
    assert alerts_of(dollars=0.2, duration_s=61, calls_unpriced=1) == [
        ("cost", "critical"),
        ("unpriced", "warning"),
        ("duration", "warning"),
    ]
