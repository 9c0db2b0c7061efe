"""Replay of recorded analysis histories against the current workflow.

`histories/` contains the recorded steps of one run per type; `tests/system/engine/test_histories.py`
describes what to do when a test here fails. To record new histories, run this file with RECORD=1.
"""

# ruff: noqa: ARG001  the running engine is a fixture

import os
from pathlib import Path

import msgspec
import pytest

from tests.system.engine.history import History, history_of, put_back, save

FOLDER = Path(__file__).parent / "histories"
STEPS = {
    "light": ["scrape", "light"],
    "deep": ["scrape", "core", "outreach", "personality"],
    "xray": ["scrape", "psychographic", "commercial", "outreach", "personality"],
}


@pytest.mark.parametrize("analysis_type", sorted(STEPS))
async def test_history_contains_the_steps_of_an_analysis(at_work, desk, analysis_type, tmp_path):
    (run,) = await desk.ended(await desk.start(analysis_type))

    history = await history_of(desk.owner, run)
    save(history, FOLDER if "RECORD" in os.environ else tmp_path)
    assert (history.names, history.outcome) == (STEPS[analysis_type], "completed")


@pytest.mark.parametrize("analysis_type", sorted(STEPS))
async def test_current_analysis_calls_only_the_steps_of_its_history(at_work, desk, analysis_type):
    content = (FOLDER / f"{analysis_type}_analysis.json").read_bytes()
    history = msgspec.json.decode(content, type=History)

    (run,) = await desk.ended(
        await desk.start(analysis_type, beside=lambda run_id: put_back(desk.session, run_id, history))
    )

    assert (run.status, run.outcome) == ("completed", history.outcome)
    assert at_work.listeners[run.kind].asked == history.names
    assert at_work.analyst.asked == []
    assert await desk.saved(run.id) == (1, 1)


async def test_bulk_stores_no_steps(at_work, desk):
    (bulk,) = await desk.ended(await desk.start_bulk([next(desk.names)]))

    assert (bulk.status, (await history_of(desk.owner, bulk)).steps) == ("completed", [])
