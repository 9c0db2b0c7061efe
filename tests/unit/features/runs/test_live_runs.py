"""LiveRuns cache: freshness, invalidation and access."""

import uuid
from datetime import timedelta

import pytest

from features.runs.application import live_runs as watching
from features.runs.application.estimates import Estimates
from features.runs.application.live_runs import FRESH_S_MAX, NOTIFICATIONS_MAX, LiveRuns, render
from features.runs.application.run_queries import RunQueries
from features.runs.domain.errors import RunNotFound
from features.runs.domain.view import Children, RunSnapshot
from shared.caller import Caller
from tests.support import NOON
from tests.unit.features.runs.test_estimates import a_run, figures, shown


class Clocks:
    def __init__(self):
        self.at = NOON
        self.s = 0.0

    def now(self):
        return self.at

    def now_s(self):
        return self.s

    def move(self, seconds):
        self.at += timedelta(seconds=seconds)
        self.s += seconds


class Row:
    """Fake database with one run."""

    def __init__(self, run):
        self.run = run
        self.reads = 0

    async def find(self, caller, run_id):
        del caller
        self.reads += 1
        return RunSnapshot(run=self.run, children=Children()) if run_id == self.run.id else None

    async def samples(self, kind):
        del kind
        return []

    async def queue_figures(self, account_id, run_id):
        del account_id, run_id
        return figures()


@pytest.fixture
def clocks():
    return Clocks()


@pytest.fixture
def live(clocks):
    live = LiveRuns(clocks.now, now_s=clocks.now_s)
    live.set_listening(is_listening=True)
    return live


@pytest.fixture
def caller():
    return Caller(id=uuid.uuid4(), claims="{}")


@pytest.fixture
def row():
    return Row(a_run())


@pytest.fixture
def views(row, live, clocks):
    return RunQueries(row, row, Estimates(row, now_s=clocks.now_s), live, {}, clocks.now)


def view_of(live, run=None):
    run = run or a_run()
    return render(run.account_id, shown(run), live.mark)


async def test_run_is_not_cached_from_an_hour_after_its_end(views, row, live, clocks, caller):
    row.run = a_run(status="completed", outcome="completed", ended_at=NOON)
    clocks.move(3_590)
    seen = await views.get(caller, row.run.id)
    kept = live.find(str(row.run.id))
    assert (seen.out.is_live, kept.fresh_until_s) == (True, clocks.s + 10)

    clocks.move(10)

    assert kept.fresh_until_s <= clocks.now_s()
    for reads in (2, 3):
        later = await views.get(caller, row.run.id)
        assert (later.out.is_live, row.reads, live.find(str(row.run.id))) == (False, reads, None)
    assert later.tag != seen.tag


@pytest.mark.parametrize(
    ("status", "fresh_s"), [("queued", 2.0), ("processing", FRESH_S_MAX), ("paused", FRESH_S_MAX)]
)
async def test_freshness_depends_on_the_status(views, row, live, caller, status, fresh_s):
    row.run = a_run(status=status)
    await views.get(caller, row.run.id)

    assert live.find(str(row.run.id)).fresh_until_s == fresh_s


async def test_unknown_run_is_not_cached(views, live, caller):
    with pytest.raises(RunNotFound):
        await views.get(caller, uuid.uuid4())

    assert len(live) == 0


def test_tag_changes_with_every_field(live):
    tags = {
        view_of(live, a_run(**changes)).tag
        for changes in ({}, {"progress": 1}, {"version": 4}, {"credits_charged": 1}, {"status": "queued"})
    }

    assert len(tags) == 5
    assert view_of(live).tag == view_of(live).tag


def test_view_older_than_a_notification_is_not_cached(live, caller):
    view = view_of(live)
    live.on_run_change(str(view.out.run_id), view.out.version + 1)

    live.show(caller, view)

    assert len(live) == 0


def test_notification_of_the_cached_version_keeps_the_entry(live, caller):
    view = view_of(live)
    live.on_run_change(str(view.out.run_id), view.out.version)
    live.show(caller, view)

    live.on_run_change(str(view.out.run_id), view.out.version)

    assert live.find(str(view.out.run_id))


def test_unversioned_notification_outlasts_a_versioned_one(live, caller):
    view = view_of(live)
    live.on_run_change(str(view.out.run_id), 0)
    live.on_run_change(str(view.out.run_id), view.out.version)

    live.show(caller, view)

    assert len(live) == 0


def test_view_is_not_cached_after_too_many_notifications(live, caller):
    view = view_of(live)
    for _ in range(NOTIFICATIONS_MAX + 1):
        live.on_run_change(str(uuid.uuid4()), 1)

    live.show(caller, view)

    assert len(live) == 0


@pytest.mark.parametrize("noun", ["caller", "account"])
def test_access_changed_during_the_read_is_not_cached(live, caller, noun):
    view = view_of(live)
    if noun == "caller":
        live.on_caller_change(caller.id)
    else:
        live.on_account_change(view.account_id)

    live.show(caller, view)

    assert live.find(str(view.out.run_id)).callers == set()


def test_connection_change_clears_the_cache(live, caller):
    view = view_of(live)
    live.show(caller, view)
    old = view_of(live)

    live.set_listening(is_listening=False)
    assert len(live) == 0
    live.show(caller, old)
    assert len(live) == 0


def test_without_notifications_callers_are_not_kept(live, caller):
    live.set_listening(is_listening=False)
    other = Caller(id=uuid.uuid4(), claims="{}")
    live.show(caller, view_of(live))
    live.show(other, view_of(live))

    assert live.find(str(a_run().id)).callers == {(other.id, None)}


def test_same_run_id_of_another_account_drops_the_callers(live, caller):
    live.show(caller, view_of(live))
    other = Caller(id=uuid.uuid4(), claims="{}")

    live.show(other, view_of(live, a_run(account_id=uuid.uuid4())))

    assert live.find(str(a_run().id)).callers == {(other.id, None)}


def test_number_of_cached_runs_is_limited(live, caller, monkeypatch):
    monkeypatch.setattr(watching, "RUNS_MAX", 5)
    ids = [uuid.uuid4() for _ in range(7)]
    for run_id in ids:
        live.show(caller, view_of(live, a_run(id=run_id)))

    assert 0 < len(live) <= 5
    assert live.find(str(ids[-1]))
