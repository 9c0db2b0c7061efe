"""Retry of a failed run in a real engine, resumed at the failed step."""

import uuid

import pytest

from core.engine.engine import running_engine
from infrastructure.database.runs.run_queries import PostgresRetries
from tests.system.engine.three_steps import parts

# Simulates a failed second step.
REFUSE = """
with step as (
    update dbos.operation_outputs set output = '{"failure":["x","y"]}'
    where workflow_uuid = $1 and function_name = 'step_2'
)
delete from dbos.operation_outputs where workflow_uuid = $1 and function_name = 'step_3'
"""
FAIL = """
update public.runs set status = 'failed', outcome = $2, error = 'x' where id = $1
"""


@pytest.mark.parametrize(
    ("outcome", "done_again"),
    [
        ("provider_failure", ["step_2", "step_3", "delivered"]),
        ("private", ["step_1", "step_2", "step_3", "delivered"]),  # the profile may be public by now
    ],
)
async def test_retry_resumes_at_the_failed_step(engine_place, engine_owner, book, outcome, done_again):
    async with parts(engine_place) as opened, running_engine(opened):
        tried = await book.start()
        await book.ended([tried])
        await engine_owner.execute(REFUSE, str(tried))
        await engine_owner.execute(FAIL, tried, outcome)

        run = await PostgresRetries(book.session).retry(
            book.tenant.account_id, tried, uuid.uuid4(), user_id=None, api_key_id=None, refund_policy=1
        )
        await book.ended([run.id])

    assert (await book.find(run.id)).outcome == "completed"
    assert await book.notes(run.id) == done_again
