"""Checks of a ledger change before it reaches the database."""

import uuid

import pytest

from features.credits.application.adjustments import Adjustments
from features.credits.application.grants import Grants
from features.credits.domain.errors import LedgerChangeInvalid
from features.credits.domain.ledger import CREDITS_MAX, check_credits, check_reference


@pytest.mark.parametrize("credits_moved", [1, 2, CREDITS_MAX])
def test_credits_within_bounds_are_accepted(credits_moved):
    assert check_credits(credits_moved) is None


@pytest.mark.parametrize("credits_moved", [0, -1, CREDITS_MAX + 1, 2**70, -(2**70)])
def test_credits_out_of_bounds_are_rejected(credits_moved):
    with pytest.raises(LedgerChangeInvalid, match="whole numbers from 1 to 1000000000000"):
        check_credits(credits_moved)


@pytest.mark.parametrize("reference", ["r", "run:5b1c", "Ünïcode 日本", "=cmd()", "a b", "r" * 200])
def test_printable_reference_is_accepted(reference):
    assert check_reference(reference) is None


@pytest.mark.parametrize(
    "reference", ["", "r" * 201, "a\nb", "a\0b", "\t", "\u202e", "\ud800", "\x7f", "a\u2028"]
)
def test_empty_long_or_unprintable_reference_is_rejected(reference):
    with pytest.raises(LedgerChangeInvalid, match="1 to 200 printable characters"):
        check_reference(reference)


class NoLedger:
    """Fails the test on any call."""

    def __getattr__(self, name):
        pytest.fail(f"the ledger was asked to {name}")


GRANTS, ADJUSTMENTS, ACCOUNT_ID = Grants(NoLedger()), Adjustments(NoLedger()), uuid.uuid4()
RIGHT = {
    GRANTS.grant: {"credits_granted": 1, "reference": "r", "transaction_type": "t"},
    ADJUSTMENTS.adjust: {"credits_delta": -1, "reference": "r", "reason": "x"},
}


@pytest.mark.parametrize(
    ("move", "wrong"),
    [
        (GRANTS.grant, {"credits_granted": 0}),
        (GRANTS.grant, {"reference": ""}),
        (GRANTS.grant, {"description": "\0"}),
        (ADJUSTMENTS.adjust, {"credits_delta": 0}),
        (ADJUSTMENTS.adjust, {"reference": "\0"}),
        (ADJUSTMENTS.adjust, {"reason": "\0"}),
    ],
    ids=lambda value: ascii(value) if isinstance(value, dict) else value.__name__,
)
async def test_invalid_ledger_change_does_not_reach_the_ledger(move, wrong):
    with pytest.raises(LedgerChangeInvalid):
        await move(ACCOUNT_ID, **{**RIGHT[move], **wrong})
