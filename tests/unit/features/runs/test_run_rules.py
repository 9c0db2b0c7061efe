import pytest

from features.runs.domain.run import RunEnd


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
