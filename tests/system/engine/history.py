"""Recorded step histories of runs, for replay against the current workflows."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from core.engine.workflow import Workflow

FOLDER = Path(__file__).parent / "histories"
STEPS = """
select function_id as number, function_name as name, output, error from dbos.operation_outputs
where workflow_uuid = $1 order by function_id
"""
INSERT = """
insert into dbos.operation_outputs (workflow_uuid, function_id, function_name, output, error, serialization)
values ($1, $2, $3, $4, $5, 'portable_json')
"""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    name: str
    output: str | None
    error: str | None


class History(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    subject: dict
    outcome: str
    steps: list[Step]

    @property
    def names(self):
        return [step.name for step in self.steps if not step.name.startswith("DBOS.")]


async def history_of(owner, run):
    rows = await owner.fetch(STEPS, str(run.id))
    return History(
        kind=run.kind, subject=run.subject, outcome=run.outcome, steps=[Step(**row) for row in rows]
    )


def save(history, folder=FOLDER):
    content = msgspec.json.format(msgspec.json.encode(history), indent=2)
    (folder / f"{history.kind}.json").write_bytes(content + b"\n")


def load(name):
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=History)


@dataclass
class Listener:
    """Wraps a workflow and records the names of the steps it calls."""

    workflow: Workflow

    def __post_init__(self):
        self.asked = []

    async def execute(self, work):
        step = work.step

        async def recorded_step(name, *args, **options):
            self.asked.append(name)
            return await step(name, *args, **options)

        work.step = recorded_step
        return await self.workflow.run(work)


async def put_back(session, run_id, history):
    """Store the steps of the history for a new run, as if its worker had died after them. Call it in the
    transaction that starts the run."""
    for step in history.steps:
        await session.fetch(INSERT, str(run_id), step.number, step.name, step.output, step.error)
