import pytest

from features.runs.domain.run import ENDED, NEXT, RunEnd, may_become


@pytest.mark.parametrize("ended", sorted(ENDED))
@pytest.mark.parametrize("later", sorted(NEXT))
def test_an_end_is_final(ended, later):
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
def test_a_run_goes_on(status, later):
    assert may_become(status, later)


@pytest.mark.parametrize("status", ["queued", "paused"])
def test_a_run_that_no_worker_has_is_not_completed(status):
    assert not may_become(status, "completed")


@pytest.mark.parametrize(
    "ending",
    [
        {"status": "completed", "outcome": "x", "error": "y"},
        {"status": "completed", "outcome": "x", "credits_charged": -1},
    ],
)
def test_an_end_that_contradicts_itself_is_a_mistake_of_ours(ending):
    with pytest.raises(AssertionError):
        RunEnd(**ending)
