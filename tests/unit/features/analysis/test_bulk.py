"""Bulk runs: progress, number of items to start, and ids of their child runs."""

from uuid import UUID

import pytest

from features.analysis.domain.bulk import STARTED_MAX, Counts, item_run_id, items_to_start, progress_of


def counts(total, *, ended=0, active=0):
    return Counts(total=total, ended=ended, completed=ended, failed=0, cancelled=0, skipped=0, active=active)


@pytest.mark.parametrize(
    ("total", "ended", "step", "percent"),
    [
        (25, 0, "batch 1 of 3", 0),
        (25, 9, "batch 1 of 3", 36),
        (25, 10, "batch 2 of 3", 40),
        (25, 25, "batch 3 of 3", 100),
        (20, 20, "batch 2 of 2", 100),
        (3, 1, "batch 1 of 1", 33),
    ],
)
def test_progress_names_the_batch_and_the_percentage(total, ended, step, percent):
    progress = progress_of(counts(total, ended=ended))

    assert (progress.step, progress.percent, progress.is_short) == (step, percent, False)


def test_progress_without_credits_is_waiting_for_credits():
    progress = progress_of(counts(25, ended=10), is_short=True)

    assert (progress.step, progress.percent, progress.is_short) == ("waiting_for_credits", 40, True)


@pytest.mark.parametrize(
    ("total", "ended", "active", "expected"),
    [
        (500, 0, 0, STARTED_MAX),
        (500, 100, 10, 5),
        (500, 100, 15, 0),
        (500, 100, 20, 0),
        (8, 5, 2, 1),
        (8, 6, 2, 0),
    ],
)
def test_items_are_started_up_to_the_limit(total, ended, active, expected):
    assert items_to_start(counts(total, ended=ended, active=active)) == expected


def test_item_has_the_same_run_id_every_time():
    bulk, other = UUID(int=1), UUID(int=2)

    assert item_run_id(bulk, 1) == item_run_id(bulk, 1)
    assert len({item_run_id(bulk, 1), item_run_id(bulk, 2), item_run_id(other, 1)}) == 3
