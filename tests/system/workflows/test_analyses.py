"""Analysis workflow: delivery, charges, failures and cancellation."""

# ruff: noqa: ARG001  the running engine is a fixture

from functools import partial
from uuid import uuid4

import msgspec
import pytest

from features.analysis.domain.requests import NewAnalysis
from infrastructure.database.analysis.anonymous import PostgresAnonymousResults
from shared.ids import RunId
from shared.llm import CompletionMalformed, CompletionRefused, ModelsUnavailable, PromptRejected
from tests.support import until
from tests.system.engine.history import history_of, put_back
from tests.system.providers.world import OPENAI, PROFILE_RUNS
from tests.system.workflows.analysis_starter import FORMS, PRICES

CORE, OUTREACH, PERSONALITY = "analysis.deep.core", "analysis.deep.outreach", "analysis.deep.personality"


def summary(run):
    return run.status, run.outcome, run.error, run.credits_charged


@pytest.mark.parametrize("analysis_type", ["light", "deep", "xray"])
async def test_analysis_is_delivered_and_charged_once(at_work, desk, simulators, analysis_type):
    (run,) = await desk.ended(await desk.start(analysis_type))

    assert summary(run) == ("completed", "completed", None, PRICES[analysis_type])
    assert run.progress == 100
    assert await simulators.asked(OPENAI) == FORMS[analysis_type]
    assert await desk.saved(run.id) == (1, 1)
    assert await desk.all_charged_once()


async def test_run_reports_its_progress_and_steps(at_work, desk):
    at_work.analyst.held.update({OUTREACH, PERSONALITY})
    run_id = await desk.start()

    async def progress():
        return (await desk.find(run_id)).progress

    await until(lambda: _is(progress, 40 + 50 // 3))
    await desk.cancel(run_id)
    (run,) = await desk.ended(run_id)

    assert run.steps[0].step == "scrape"
    assert {begun.step for begun in run.steps} == {"scrape", "core", "outreach", "personality"}


async def _is(value, expected):
    return await value() == expected


async def test_known_profile_is_scraped_again_only_when_fresh_is_requested(at_work, desk, simulators):
    name = next(desk.names)
    await desk.ended(await desk.start("light", name))
    looks = await simulators.asked(f"POST {PROFILE_RUNS}")

    (second,) = await desk.ended(await desk.start("light", name))
    (fresh,) = await desk.ended(await desk.start("light", name, is_fresh=True))

    assert summary(second) == ("completed", "completed_from_cache", None, 1)
    assert summary(fresh) == ("completed", "completed", None, 1)
    assert await simulators.asked(f"POST {PROFILE_RUNS}") == 2 * looks


@pytest.mark.parametrize(
    ("beginning", "outcome"),
    [
        ("private", "private"),
        ("missing", "not_found"),
        ("restricted", "restricted"),
        ("weaver", "icp_violation"),
    ],
)
async def test_rejected_profile_is_not_charged_and_not_prompted(
    at_work, make_desk, simulators, beginning, outcome
):
    desk = await make_desk(followers_min=1_000_000_000)
    name = next(desk.names).replace("weaver", beginning)

    (run,) = await desk.ended(await desk.start("deep", name))

    assert summary(run) == ("failed", outcome, outcome, 0)
    assert await simulators.asked(OPENAI) == 0
    assert await desk.saved(run.id) == (0, 0)
    assert await desk.all_charged_once()


async def test_failed_scrape_releases_the_hold(at_work, desk, simulators):
    await simulators.fault("/apify", times=None, status=500)
    await simulators.fault("/scraperapi", times=None, status=500)

    (run,) = await desk.ended(await desk.start())

    assert summary(run) == ("failed", "scrape_failure", "profiles_unavailable", 0)
    assert await desk.all_charged_once()


async def test_analysis_for_a_deleted_business_is_not_charged(at_work, desk):
    await desk.owner.execute(
        "update business_profiles set deleted_at = now() where id = $1", desk.business_id
    )

    (run,) = await desk.ended(await desk.start())

    assert summary(run) == ("failed", "internal_failure", "business_profile_deleted", 0)
    assert await desk.all_charged_once()


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ModelsUnavailable(task=CORE, retry_after_s=60), "provider_failure"),
        (CompletionMalformed(task=CORE, model="m"), "invalid_answer"),
        (CompletionRefused(task=CORE, model="m"), "refused_answer"),
        (PromptRejected(task=CORE, model="m"), "internal_failure"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.code,
)
async def test_failed_prompt_cancels_the_others_without_charge(at_work, desk, error, outcome):
    at_work.analyst.refusals[CORE] = error
    at_work.analyst.held.update({OUTREACH, PERSONALITY})

    (run,) = await desk.ended(await desk.start())

    assert summary(run) == ("failed", outcome, error.code, 0)
    assert sorted(at_work.analyst.interrupted) == [OUTREACH, PERSONALITY]
    assert await desk.saved(run.id) == (0, 0)
    assert await desk.all_charged_once()


async def test_stored_failure_ends_the_replayed_run_without_new_prompts(at_work, desk):
    at_work.analyst.refusals[OUTREACH] = CompletionRefused(task=OUTREACH, model="m")
    at_work.analyst.held.update({CORE, PERSONALITY})
    (run,) = await desk.ended(await desk.start())
    history = await history_of(desk.owner, run)
    at_work.analyst.reset()

    (again,) = await desk.ended(
        await desk.start(beside=lambda run_id: put_back(desk.session, run_id, history))
    )

    assert history.names == ["scrape", "outreach"]
    assert summary(again) == summary(run) == ("failed", "refused_answer", "model_refused", 0)
    assert at_work.analyst.asked == []


async def test_first_of_two_stored_failures_in_step_order_is_reported(at_work, desk):
    histories = []
    for task, error in (
        (CORE, ModelsUnavailable(task=CORE, retry_after_s=60)),
        (OUTREACH, CompletionRefused(task=OUTREACH, model="m")),
    ):
        at_work.analyst.reset()
        at_work.analyst.refusals[task] = error
        at_work.analyst.held.update({CORE, OUTREACH, PERSONALITY} - {task})
        (run,) = await desk.ended(await desk.start())
        histories.append(await history_of(desk.owner, run))
    first, second = histories
    both = msgspec.structs.replace(first, steps=[*first.steps, second.steps[-1]])

    (run,) = await desk.ended(await desk.start(beside=lambda run_id: put_back(desk.session, run_id, both)))

    assert both.names == ["scrape", "core", "outreach"]
    assert run.error == "models_unavailable"


# Half of the price after prompts have started, rounded down; at least one when all have completed.
CANCELLED = [
    *(
        ("light", "inside:scrape", "cancelled_scraping", 0),
        ("light", "inside:light", "cancelled_analyzing", 0),
    ),
    *(("deep", "inside:scrape", "cancelled_scraping", 0), ("xray", "inside:scrape", "cancelled_scraping", 0)),
    *(("deep", f"inside:{step}", "cancelled_analyzing", 2) for step in ("core", "outreach", "personality")),
    *(("xray", f"inside:{step}", "cancelled_analyzing", 3) for step in ("psychographic", "commercial")),
    *(("xray", f"inside:{step}", "cancelled_analyzing", 3) for step in ("outreach", "personality")),
    *(("light", "before:save", "cancelled_saving", 1), ("deep", "before:save", "cancelled_saving", 2)),
    ("xray", "before:save", "cancelled_saving", 3),
]
OLDER_POLICY = {"refund_policy": 1}  # rounds half of one credit down to nothing


async def test_cancellation_at_any_step_charges_by_the_refund_policy(at_work, desk):
    runs = [await desk.start(kind, halt_at=place) for kind, place, _, _ in CANCELLED]
    runs.append(await desk.start("light", halt_at="before:save", **OLDER_POLICY))
    for run_id in runs:
        await at_work.halted(run_id)

    assert [await desk.cancel(run_id) for run_id in runs] == ["requested"] * len(runs)
    await _heard_of_cancel(desk)
    at_work.go_on.touch()
    ended = await desk.ended(*runs)

    assert [summary(run) for run in ended] == [
        *(("cancelled", outcome, None, credits_charged) for _, _, outcome, credits_charged in CANCELLED),
        ("cancelled", "cancelled_saving", None, 0),
    ]
    assert [await desk.saved(run.id) for run in ended] == [(0, 0)] * len(runs)
    assert await desk.all_charged_once()


async def _heard_of_cancel(desk):
    """Wait for a heartbeat that began after the cancellation and carries it to the worker."""
    beat = "select heartbeat_at from traffic.workers where stopped_at is null"
    for _ in range(2):
        before = await desk.owner.fetchval(beat)
        await until(partial(desk.owner.fetchval, beat + " and heartbeat_at > $1", before))


async def test_cancelled_run_aborts_its_open_provider_requests(at_work, desk, simulators):
    await simulators.fault("/openai", kind="timeout", times=None)
    run_id = await desk.start("xray")

    async def under_way(count):
        return (await simulators.state())["in_flight"].get(OPENAI, 0) == count

    await until(lambda: under_way(4))
    await desk.cancel(run_id)
    (run,) = await desk.ended(run_id)

    assert summary(run) == ("cancelled", "cancelled_analyzing", None, 3)
    await until(lambda: under_way(0))
    assert await simulators.asked(OPENAI) == 4


async def test_ended_analysis_records_cost_duration_and_score(at_work, desk):
    (run,) = await desk.ended(await desk.start("light"))

    point = await until(
        lambda: desk.owner.fetchrow(
            "select * from traffic.data_points where kind = 'analysis' and blobs[1] = $1", str(run.id)
        )
    )
    assert point["blobs"][2:] == ["light", "completed"]
    cost, duration_ms, score = point["doubles"]
    assert cost == pytest.approx(run.cost_nanodollars / 1e9)
    assert 0 < duration_ms < 60_000
    assert 0 <= score <= 100


async def test_anonymous_visitor_gets_a_light_analysis_without_a_business(at_work, desk, firm_database):
    visitors = PostgresAnonymousResults(firm_database)
    order = NewAnalysis(username=next(desk.names), analysis_type="light", business_profile_id=None)
    run_id = RunId(uuid4())
    await visitors.start(run_id, order, token_hash=b"t" * 32)

    async def result():
        found = await visitors.find(b"t" * 32)
        return found.status == "completed" and found.result

    found = await until(result)
    assert found.username == order.username
    assert found.reasons
