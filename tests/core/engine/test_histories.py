"""Runs that are under way when their workflow is changed go on as they began.

`histories/` holds what runs of each kind once did. Today's workflow has to ask for the same steps when it is
given what was kept. To change a workflow, ask `work.patch` where the ways part and leave the old history
where it is; to add a new one, run this file with RECORD=1.
"""

import dataclasses
import os

import msgspec
import pytest

from core.engine.engine import running_engine
from core.engine.run_executor import RunResult, Workflow
from features.runs.domain.run import RunEnd
from tests.core.engine.history import FOLDER, Listener, history_of, load, put_back, save
from tests.core.engine.three_steps import KIND, parts

COMPLETED = RunResult(RunEnd(status="completed", outcome="completed"))


@pytest.fixture
def replay(book, engine_place):
    """A function: which steps a workflow asks for when its run has come as far as the history, and the run.
    Without a workflow, today's of that kind."""

    async def replay(history, carry_out=None):
        async with parts(engine_place) as opened:
            today = {workflow.kind: workflow for workflow in opened.workflows}
            listener = Listener(Workflow(history.kind, carry_out) if carry_out else today[history.kind])
            workflows = (Workflow(history.kind, listener.carry_out),)
            async with running_engine(dataclasses.replace(opened, workflows=workflows)):
                run_id = await book.start(
                    kind=history.kind,
                    beside=lambda run_id: put_back(book.session, run_id, history),
                    **history.subject,
                )
                await book.ended([run_id])
        return listener.asked, await book.find(run_id)

    return replay


def steps(*names):
    """A workflow of these steps; a pair is an old one and, for runs that are not past it, a new one."""

    async def done():
        return 0

    async def carry_out(work):
        for name in names:
            if isinstance(name, tuple):
                old, new = name
                name = new if await work.patch(new) else old  # noqa: PLW2901
            await work.step(name, done, returns=int, percent=0)
        return COMPLETED

    return carry_out


async def test_a_run_leaves_its_history(book, engine_place, tmp_path):
    async with parts(engine_place) as opened, running_engine(opened):
        run_id = await book.start(kind=KIND)
        await book.ended([run_id])

    history = await history_of(book.owner, await book.find(run_id))
    save(history, FOLDER if "RECORD" in os.environ else tmp_path)
    assert (history.names, history.outcome) == (["step_1", "step_2", "step_3"], "completed")


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
async def test_todays_workflow_asks_for_the_steps_of_its_history(replay, name):
    history = load(name)

    asked, run = await replay(history)

    assert asked == history.names
    assert run.outcome == history.outcome


@pytest.mark.parametrize(
    "changed",
    [
        ("step_1", "renamed", "step_3"),
        ("step_2", "step_1", "step_3"),
        ("step_1", "step_2"),
        ("step_1", "step_2", "step_3", "step_4"),
        (),
    ],
    ids=["renamed", "swapped", "shortened", "lengthened", "emptied"],
)
async def test_a_changed_workflow_is_found_out(replay, changed):
    history = load(KIND)

    asked, _ = await replay(history, steps(*changed))

    assert asked != history.names


async def test_a_run_that_can_no_longer_be_replayed_fails_and_costs_nothing(replay, book):
    _, run = await replay(load(KIND), steps("step_1", "renamed", "step_3"))

    assert (run.status, run.error) == ("failed", "workflow_changed")
    assert await book.all_charged_once()


async def test_a_patched_workflow_goes_the_old_way_for_old_runs_and_the_new_way_for_new_ones(replay):
    history = load(KIND)
    patched = steps("step_1", ("step_2", "better_step_2"), "step_3")

    old, old_run = await replay(history, patched)
    new, new_run = await replay(msgspec.structs.replace(history, steps=history.steps[:1]), patched)

    assert (old, old_run.status) == (history.names, "completed")
    assert (new, new_run.status) == (["step_1", "better_step_2", "step_3"], "completed")
