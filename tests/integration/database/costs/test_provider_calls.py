"""Durable usage records: written in spite of cancelled callers, unusual texts and database outages."""

import asyncio
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from infrastructure.database import durable_log as journal
from infrastructure.database import write_behind as later
from infrastructure.database.clients import DatabaseUnavailable
from infrastructure.database.costs.provider_calls import PostgresCallLog
from shared.ids import UserId
from shared.llm import CostOwner, Usage
from tests.conftest import make_tenant
from tests.support import NOON, until
from tests.unit.features.costs.calls import model_call, scrape

COUNT = "select count(*) from ai_usage_logs where run_id = $1"


class Gate:
    """The real database, which a test can block or make unavailable."""

    is_away = False
    statements = 0

    def __init__(self, database):
        self._session = database.admin("test")
        self.open = asyncio.Event()
        self.open.set()

    def admin(self, _reason):
        return self

    async def fetch(self, statement, *args):
        self.statements += 1
        await self.open.wait()
        if self.is_away:
            raise DatabaseUnavailable
        return await self._session.fetch(statement, *args)


@pytest.fixture
def gate(database):
    return Gate(database)


@pytest.fixture
async def log(gate):
    log = PostgresCallLog(gate)
    yield log
    await log.close()


@pytest.fixture
def cost_owner(tenant):
    return CostOwner(account_id=tenant.account_id, user_id=UserId(uuid4()), run_id=uuid4())


async def test_model_call_is_recorded_with_all_fields(log, owner, cost_owner):
    call = model_call(
        12_345,
        cost_owner=cost_owner,
        usage=Usage(
            tokens_in=100, tokens_cached=40, tokens_cache_written=10, tokens_out=50, tokens_reasoning=20
        ),
        attempt=2,
        outcome="malformed",
        is_estimated=True,
        cache="gateway",
        error="503",
        gateway_log_id="log-1",
    )

    await log.record_model_call(call)

    row = dict(await owner.fetchrow("select * from ai_usage_logs where run_id = $1", cost_owner.run_id))
    assert row.pop("id") is not None
    assert row == {
        "created_at": NOON,
        "call_id": call.call_id,
        "attempt": 2,
        "account_id": cost_owner.account_id,
        "user_id": cost_owner.user_id,
        "run_id": cost_owner.run_id,
        "provider": "openai",
        "model": "gpt-5-mini",
        "task": "light",
        "outcome": "malformed",
        "tokens_in": 100,
        "tokens_cached": 40,
        "tokens_cache_written": 10,
        "tokens_out": 50,
        "tokens_reasoning": 20,
        "is_estimated": True,
        "cost_nanodollars": 12_345,
        "latency_ms": 1_500.0,
        "cache": "gateway",
        "is_simulated": True,
        "error": "503",
        "gateway_log_id": "log-1",
    }


async def test_scrape_is_recorded_with_all_fields(log, owner, cost_owner):
    await log.record_scrape(scrape(3_000_000, cost_owner=cost_owner, provider_run_id="run-1", posts_asked=50))

    row = dict(await owner.fetchrow("select * from scrape_logs where run_id = $1", cost_owner.run_id))
    assert row.pop("id") is not None
    assert row == {
        "created_at": NOON,
        "account_id": cost_owner.account_id,
        "user_id": cost_owner.user_id,
        "run_id": cost_owner.run_id,
        "provider": "apify",
        "username": "natgeo",
        "outcome": "ok",
        "posts_asked": 50,
        "posts_found": 12,
        "cost_nanodollars": 3_000_000,
        "is_estimated": True,
        "duration_ms": 8_000.0,
        "is_simulated": True,
        "provider_run_id": "run-1",
    }


async def test_unknown_price_is_null_and_a_call_may_have_no_cost_owner(log, owner):
    call_id = uuid4()

    await log.record_model_call(model_call(None, call_id=call_id))

    row = await owner.fetchrow("select * from ai_usage_logs where call_id = $1", call_id)
    assert (row["cost_nanodollars"], row["account_id"], row["run_id"]) == (None, None, None)


async def test_concurrent_calls_share_a_round_trip(log, gate, owner, cost_owner):
    await asyncio.gather(*(log.record_model_call(model_call(1, cost_owner=cost_owner)) for _ in range(300)))

    assert await owner.fetchval(COUNT, cost_owner.run_id) == 300
    assert gate.statements <= 4


@pytest.mark.parametrize("is_away", [False, True])
async def test_call_of_a_cancelled_caller_is_recorded(log, gate, owner, cost_owner, is_away):
    gate.open.clear()
    recording = asyncio.create_task(log.record_model_call(model_call(1, cost_owner=cost_owner)))
    await until(lambda: gate.statements)

    recording.cancel()
    with pytest.raises(asyncio.CancelledError):
        await recording
    gate.is_away = is_away
    gate.open.set()
    await until(lambda: not log._model_calls._writing)  # noqa: SLF001  the write has finished
    gate.is_away = False
    await log.close()

    assert await owner.fetchval(COUNT, cost_owner.run_id) == 1


async def test_rolled_back_transaction_of_the_caller_keeps_the_recorded_call(database, owner, cost_owner):
    log, session = PostgresCallLog(database), database.admin("test")

    with pytest.raises(ZeroDivisionError):
        async with session.transaction():
            await log.record_model_call(model_call(1, cost_owner=cost_owner))
            raise ZeroDivisionError

    assert await owner.fetchval(COUNT, cost_owner.run_id) == 1


async def test_calls_during_an_outage_are_recorded_later(log, gate, owner, cost_owner, monkeypatch):
    monkeypatch.setattr(later, "WRITE_INTERVAL_S", 0.01)
    gate.is_away = True
    with capture_logs() as logs:
        for _ in range(5):
            await log.record_model_call(model_call(1, cost_owner=cost_owner))
        await until(lambda: gate.statements > 20)
        assert await owner.fetchval(COUNT, cost_owner.run_id) == 0

        gate.is_away = False
        await until(lambda: owner.fetchval(COUNT, cost_owner.run_id))

    assert await owner.fetchval(COUNT, cost_owner.run_id) == 5
    assert [entry["event"] for entry in logs] == ["not_written_yet"]


async def test_unresponsive_database_delays_a_call_for_a_short_time_only(
    log, gate, owner, cost_owner, monkeypatch
):
    monkeypatch.setattr(journal, "WRITE_WAIT_S", 0.01)
    gate.open.clear()
    async with asyncio.timeout(5):
        await log.record_model_call(model_call(1, cost_owner=cost_owner))
    assert await owner.fetchval(COUNT, cost_owner.run_id) == 0

    gate.open.set()
    await until(lambda: owner.fetchval(COUNT, cost_owner.run_id))


async def test_close_writes_pending_calls(gate, owner, cost_owner):
    log = PostgresCallLog(gate)
    gate.is_away = True
    await log.record_model_call(model_call(1, cost_owner=cost_owner))
    gate.is_away = False

    await log.close()

    assert await owner.fetchval(COUNT, cost_owner.run_id) == 1


async def test_lost_rows_are_logged(gate):
    log = PostgresCallLog(gate)
    gate.is_away = True
    await log.record_model_call(model_call(1))
    with capture_logs() as logs:
        await log.close()

    assert [(entry["event"], entry["count"]) for entry in logs if entry["event"] == "lost"] == [("lost", 1)]


async def test_row_that_arrives_twice_is_stored_once(log, gate, database, owner, cost_owner):
    """The database stored the row, and the connection was lost before the confirmation."""
    session = database.admin("test")

    async def take_and_leave(statement, *args):
        await session.fetch(statement, *args)
        raise DatabaseUnavailable

    gate.fetch = take_and_leave
    await log.record_model_call(model_call(1, cost_owner=cost_owner))
    del gate.fetch
    with capture_logs() as logs:
        await log.close()

    assert await owner.fetchval(COUNT, cost_owner.run_id) == 1
    assert logs == []


@pytest.mark.parametrize(
    "changes",
    [
        {"error": "a\0b", "model": "m\0"},
        {"provider": "\ud800"},
        {"task": "x" * 100_000},
        {"latency_ms": float("nan")},
        {"latency_ms": float("inf")},
        {"usage": Usage(tokens_in=2**70, tokens_out=-(2**70))},
        {"attempt": 2**40},
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_no_value_from_a_provider_prevents_a_record(log, owner, cost_owner, changes):
    await log.record_model_call(model_call(1, cost_owner=cost_owner, **changes))

    assert await owner.fetchval(COUNT, cost_owner.run_id) == 1


async def test_costs_remain_when_their_account_is_removed(log, owner):
    gone, stays = await make_tenant(owner), await make_tenant(owner)
    await owner.execute("delete from accounts where id = $1", gone.account_id)
    run_id = uuid4()

    await asyncio.gather(
        *(
            log.record_model_call(
                model_call(1, cost_owner=CostOwner(account_id=tenant.account_id, run_id=run_id))
            )
            for tenant in (gone, stays)
        )
    )

    rows = await owner.fetch("select account_id from ai_usage_logs where run_id = $1", run_id)
    assert {row["account_id"] for row in rows} == {None, stays.account_id}


async def test_row_that_cannot_be_written_does_not_prevent_the_others(log, gate, owner, cost_owner):
    gate.open.clear()
    with capture_logs() as logs:
        recording = asyncio.gather(
            *(
                log.record_model_call(model_call(1, cost_owner=cost_owner, at=at))
                for at in (NOON, NOON.replace(tzinfo=None), NOON, "no time", NOON)
            )
        )
        await until(lambda: gate.statements)
        gate.open.set()
        await recording

    assert await owner.fetchval(COUNT, cost_owner.run_id) >= 3
    (event,) = {entry["event"] for entry in logs}
    assert event == "not_written"
    assert logs[0]["log_level"] == "critical"
