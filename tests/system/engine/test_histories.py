"""Replay of recorded histories against the current workflows.

`histories/` contains the recorded steps of one run per kind. The current workflow must call the same steps
when their results are replayed, so that runs in progress survive a deployment. To change a workflow, call
`work.patch` where the paths differ and keep the old history; to record a new one, run this file with
RECORD=1.
"""

import dataclasses
import os

import msgspec
import pytest

from core.engine.engine import running_engine
from core.engine.workflow import RunResult, Workflow
from features.runs.domain.run import RunEnd
from tests.system.engine.history import FOLDER, Listener, history_of, load, put_back, save
from tests.system.engine.three_steps import KIND, parts

COMPLETED = RunResult(RunEnd(status="completed", outcome="completed"))


@pytest.fixture
def replay(book, engine_place):
    """Function that resumes a run after the given history; returns the called steps and the run. The default
    workflow is the current one of that kind."""

    async def replay(history, execute=None):
        async with parts(engine_place) as opened:
            today = {workflow.kind: workflow for workflow in opened.workflows}
            listener = Listener(Workflow(history.kind, execute) if execute else today[history.kind])
            workflows = (Workflow(history.kind, listener.execute),)
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
    """Workflow of these steps; a pair is the old step and its patched replacement."""

    async def done():
        return 0

    async def execute(work):
        for name in names:
            if isinstance(name, tuple):
                old, new = name
                name = new if await work.patch(new) else old  # noqa: PLW2901
            await work.step(name, done, returns=int, percent=0)
        return COMPLETED

    return execute


async def test_history_contains_the_steps_of_a_run(book, engine_place, tmp_path):
    async with parts(engine_place) as opened, running_engine(opened):
        run_id = await book.start(kind=KIND)
        await book.ended([run_id])

    history = await history_of(book.owner, await book.find(run_id))
    save(history, FOLDER if "RECORD" in os.environ else tmp_path)
    assert (history.names, history.outcome) == (["step_1", "step_2", "step_3"], "completed")


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
async def test_current_workflow_calls_the_steps_of_its_history(replay, name):
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
async def test_changed_workflow_differs_from_its_history(replay, changed):
    history = load(KIND)

    asked, _ = await replay(history, steps(*changed))

    assert asked != history.names


async def test_run_that_cannot_be_replayed_fails_without_charge(replay, book):
    _, run = await replay(load(KIND), steps("step_1", "renamed", "step_3"))

    assert (run.status, run.error) == ("failed", "workflow_changed")
    assert await book.all_charged_once()


async def test_patched_workflow_keeps_the_old_path_for_old_runs_only(replay):
    history = load(KIND)
    patched = steps("step_1", ("step_2", "better_step_2"), "step_3")

    old, old_run = await replay(history, patched)
    new, new_run = await replay(msgspec.structs.replace(history, steps=history.steps[:1]), patched)

    assert (old, old_run.status) == (history.names, "completed")
    assert (new, new_run.status) == (["step_1", "better_step_2", "step_3"], "completed")
