"""What a process knows of runs, for how long, and who may know it."""

import uuid
from datetime import timedelta

import pytest

from features.runs.application import live_runs as watching
from features.runs.application.estimates import Estimates
from features.runs.application.live_runs import FRESH_S_MAX, HEARD_MAX, LiveRuns, rendered
from features.runs.application.run_queries import RunQueries
from features.runs.domain.errors import RunNotFound
from features.runs.domain.view import Children, RunSnapshot
from shared.caller import Caller
from tests.features.runs.test_estimates import a_run, figures, shown
from tests.support import NOON


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
    """The database, with one run in it."""

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
    live.hear(is_hearing=True)
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
    return rendered(run.account_id, shown(run), live.mark)


async def test_what_was_shown_an_hour_after_the_end_comes_from_the_row(views, row, live, clocks, caller):
    row.run = a_run(status="completed", outcome="completed", ended_at=NOON)
    clocks.move(3_590)
    seen = await views.look(caller, row.run.id)
    kept = live.find(str(row.run.id))
    assert (seen.out.is_live, kept.fresh_until_s) == (True, clocks.s + 10)

    clocks.move(10)

    assert kept.fresh_until_s <= clocks.now_s()
    for reads in (2, 3):
        later = await views.look(caller, row.run.id)
        assert (later.out.is_live, row.reads, live.find(str(row.run.id))) == (False, reads, None)
    assert later.tag != seen.tag


@pytest.mark.parametrize(
    ("status", "fresh_s"), [("queued", 2.0), ("processing", FRESH_S_MAX), ("paused", FRESH_S_MAX)]
)
async def test_what_is_told_of_is_believed_longer_than_what_changes_untold(
    views, row, live, caller, status, fresh_s
):
    row.run = a_run(status=status)
    await views.look(caller, row.run.id)

    assert live.find(str(row.run.id)).fresh_until_s == fresh_s


async def test_a_run_that_is_not_there_leaves_nothing_behind(views, live, caller):
    with pytest.raises(RunNotFound):
        await views.look(caller, uuid.uuid4())

    assert len(live) == 0


def test_a_tag_stands_for_everything_that_is_shown(live):
    tags = {
        view_of(live, a_run(**changes)).tag
        for changes in ({}, {"progress": 1}, {"version": 4}, {"credits_charged": 1}, {"status": "queued"})
    }

    assert len(tags) == 5
    assert view_of(live).tag == view_of(live).tag


def test_what_was_read_before_a_change_is_not_kept(live, caller):
    view = view_of(live)
    live.hear_change(str(view.out.run_id), view.out.version + 1)

    live.show(caller, view)

    assert len(live) == 0


def test_news_of_what_was_read_are_none(live, caller):
    view = view_of(live)
    live.hear_change(str(view.out.run_id), view.out.version)
    live.show(caller, view)

    live.hear_change(str(view.out.run_id), view.out.version)

    assert live.find(str(view.out.run_id))


def test_what_happened_to_a_part_is_not_hidden_by_what_happened_later(live, caller):
    view = view_of(live)
    live.hear_change(str(view.out.run_id), 0)
    live.hear_change(str(view.out.run_id), view.out.version)

    live.show(caller, view)

    assert len(live) == 0


def test_when_too_much_was_heard_nothing_is_believed(live, caller):
    view = view_of(live)
    for _ in range(HEARD_MAX + 1):
        live.hear_change(str(uuid.uuid4()), 1)

    live.show(caller, view)

    assert len(live) == 0


@pytest.mark.parametrize("noun", ["caller", "account"])
def test_access_that_ended_while_the_run_was_read_is_not_remembered(live, caller, noun):
    view = view_of(live)
    if noun == "caller":
        live.hear_of_caller(caller.id)
    else:
        live.hear_of_account(view.account_id)

    live.show(caller, view)

    assert live.find(str(view.out.run_id)).callers == set()


def test_nothing_is_kept_of_what_was_known_before_the_connection_changed(live, caller):
    view = view_of(live)
    live.show(caller, view)
    old = view_of(live)

    live.hear(is_hearing=False)
    assert len(live) == 0
    live.show(caller, old)
    assert len(live) == 0


def test_deaf_each_caller_is_asked_about_anew(live, caller):
    live.hear(is_hearing=False)
    other = Caller(id=uuid.uuid4(), claims="{}")
    live.show(caller, view_of(live))
    live.show(other, view_of(live))

    assert live.find(str(a_run().id)).callers == {(other.id, None)}


def test_another_accounts_run_of_the_same_name_is_another_run(live, caller):
    live.show(caller, view_of(live))
    other = Caller(id=uuid.uuid4(), claims="{}")

    live.show(other, view_of(live, a_run(account_id=uuid.uuid4())))

    assert live.find(str(a_run().id)).callers == {(other.id, None)}


def test_so_many_are_kept_and_no_more(live, caller, monkeypatch):
    monkeypatch.setattr(watching, "RUNS_MAX", 5)
    ids = [uuid.uuid4() for _ in range(7)]
    for run_id in ids:
        live.show(caller, view_of(live, a_run(id=run_id)))

    assert 0 < len(live) <= 5
    assert live.find(str(ids[-1]))
