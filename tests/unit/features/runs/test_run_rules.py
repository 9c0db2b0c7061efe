import pytest

from features.runs.domain.run import ENDED, NEXT, RunEnd, may_become


@pytest.mark.parametrize("ended", sorted(ENDED))
@pytest.mark.parametrize("later", sorted(NEXT))
def test_ended_run_never_changes_status(ended, later):
    assert not may_become(ended, later)


@pytest.mark.parametrize(
    ("status", "later"),
    [
        ("queued", "processing"),
        ("queued", "cancelled"),
        ("processing", "paused"),
        ("paused", "queued"),
        ("paused", "failed"),
        ("paused", "cancelled"),
        *(("processing", ended) for ended in sorted(ENDED)),
    ],
)
def test_allowed_transitions(status, later):
    assert may_become(status, later)


@pytest.mark.parametrize("status", ["queued", "paused"])
def test_run_without_a_worker_cannot_complete(status):
    assert not may_become(status, "completed")


@pytest.mark.parametrize(
    "ending",
    [
        {"status": "completed", "outcome": "x", "error": "y"},
        {"status": "completed", "outcome": "x", "credits_charged": -1},
    ],
)
def test_contradictory_end_fails_an_assertion(ending):
    with pytest.raises(AssertionError):
        RunEnd(**ending)
