import uuid

import pytest

from features.runs.domain.run import NewRun, RunEnd
from infrastructure.database.runs.runs import PostgresRuns
from infrastructure.database.runs.workers import PostgresWorkerRegistry
from shared.ids import RunId
from tests.support import until

RUNS = "/v1/runs"
GRANT = "select ledger.grant_credits($1, 75, 'g', 'admin_grant')"  # 100 with the signup bonus
DONE = RunEnd(status="completed", outcome="completed", credits_charged=5)
FAILED = RunEnd(status="failed", outcome="provider_failure", error="provider_failure")


class Book:
    """Runs of one account, whose states the test changes directly."""

    def __init__(self, runs, executor, account_id, headers):
        self.runs = runs
        self.executor = executor
        self.account_id = account_id
        self.headers = headers

    async def queued(self, **changes):
        values = {
            "account_id": self.account_id,
            "id": RunId(uuid.uuid4()),
            "kind": "deep_analysis",
            "subject": {"username": "ada"},
            "credits_held": 5,
            "transaction_type": "analysis",
            "queue": "no_worker",
        }
        started = await self.runs.start(NewRun(**values | changes))
        assert started.outcome == "started"
        return started.run

    async def begun(self, **changes):
        return await self.begin(await self.queued(**changes))

    async def begin(self, run):
        outcome, run = await self.runs.begin(run.account_id, run.id, executor=self.executor, attempts_max=3)
        assert outcome == "begun"
        return run

    async def ended(self, ending=DONE, **changes):
        run = await self.begun(**changes)
        assert await self.runs.finish(run, ending) == "done"
        return run


@pytest.fixture
def live(application):
    return application.dependencies["live_runs"]


@pytest.fixture
async def hearing(live):
    """The LiveRuns cache, once it receives database notifications."""
    await until(lambda: live.is_listening)
    return live


@pytest.fixture
async def executor(database):
    name = str(uuid.uuid4())
    await PostgresWorkerRegistry(database.admin("tests")).register(name, host="here", queues=["tests"])
    return name


@pytest.fixture
async def make_book(client, bearer, owner, database, executor):
    """Returns a function that creates a user with credits and a plan without tight limits."""

    async def make(headers=None):
        headers = headers or bearer()
        me = await client.get("/v1/me", headers=headers)
        account_id = uuid.UUID(me.json()["account"]["id"])
        await owner.execute("update accounts set plan = 'enterprise' where id = $1", account_id)
        await owner.execute(GRANT, account_id)
        return Book(PostgresRuns(database.admin("tests")), executor, account_id, headers)

    return make


@pytest.fixture
async def book(make_book):
    return await make_book()


@pytest.fixture
def get(client, book):
    """Returns a function that requests a run as its account."""

    async def get(run_id, headers=None, **query):
        return await client.get(f"{RUNS}/{run_id}", headers={**book.headers, **(headers or {})}, params=query)

    return get


@pytest.fixture
def poll(get):
    """Returns a function that polls a run with the ETag of a previous response."""

    async def poll(run_id, seen, **query):
        return await get(run_id, {"If-None-Match": seen.headers["etag"]}, **query)

    return poll
