"""Checks of a ledger change before it reaches the database."""

import uuid

import pytest

from features.credits.application.grants import Grants
from features.credits.application.holds import Holds
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


GRANTS, HOLDS, ACCOUNT_ID = Grants(NoLedger()), Holds(NoLedger()), uuid.uuid4()
RIGHT = {
    GRANTS.grant: {"credits_granted": 1, "reference": "r", "transaction_type": "t"},
    HOLDS.place: {"credits_held": 1, "reference": "r", "transaction_type": "t"},
    HOLDS.settle: {"credits_spent": 1, "reference": "r"},
    HOLDS.release: {"reference": "r"},
    HOLDS.refund: {"credits_refunded": 1, "reference": "r", "hold_reference": "h"},
}


@pytest.mark.parametrize(
    ("move", "wrong"),
    [
        (GRANTS.grant, {"credits_granted": 0}),
        (GRANTS.grant, {"reference": ""}),
        (HOLDS.place, {"credits_held": 0}),
        (HOLDS.place, {"reference": "\0"}),
        (HOLDS.settle, {"credits_spent": -1}),
        (HOLDS.refund, {"credits_refunded": 0}),
        (HOLDS.refund, {"reference": "\0"}),
        (HOLDS.settle, {"reference": "\0"}),
        (HOLDS.release, {"reference": "\0"}),
        (HOLDS.refund, {"hold_reference": "\0"}),
        (HOLDS.refund, {"description": "\0"}),
        (HOLDS.place, {"description": "\0"}),
        (GRANTS.grant, {"description": "\0"}),
    ],
    ids=lambda value: ascii(value) if isinstance(value, dict) else value.__name__,
)
async def test_invalid_ledger_change_does_not_reach_the_ledger(move, wrong):
    with pytest.raises(LedgerChangeInvalid):
        await move(ACCOUNT_ID, **{**RIGHT[move], **wrong})
