"""Ledger entries, balances and the checks of a ledger change.

The ledger itself is SQL (``ledger.*``), which prevents overdrafts for any number of concurrent clients. The
checks below report invalid input before it reaches the database.
"""

from datetime import datetime
from typing import Literal

import msgspec

from features.credits.domain.errors import LedgerChangeInvalid
from shared.ids import AccountId

Kind = Literal["grant", "hold", "settle", "release", "spend", "refund", "expire"]

CREDITS_MAX = 1_000_000_000_000
REFERENCE_LENGTH_MAX = 200
DESCRIPTION_LENGTH_MAX = 500


class Balance(msgspec.Struct, frozen=True, kw_only=True):
    account_id: AccountId
    credits_available: int
    credits_held: int
    next_expiry_at: datetime | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One ledger entry. Entries are never changed or deleted."""

    position: int = msgspec.field(name="id")
    kind: Kind
    transaction_type: str
    reference: str
    credits_delta: int
    held_delta: int
    balance_after: int
    held_after: int
    description: str | None
    created_at: datetime


class LedgerChange(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a ledger operation. ``repeated``: it was done before, so nothing changed."""

    repeated: bool
    credits_moved: int
    credits_available: int
    credits_held: int


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An inconsistency between balances, entries, lots and holds."""

    account_id: AccountId
    finding: str
    expected: int
    found: int


def check_credits(credits_moved: int) -> None:
    if not 1 <= credits_moved <= CREDITS_MAX:
        raise LedgerChangeInvalid(reason=f"Credits are whole numbers from 1 to {CREDITS_MAX}.")


def check_reference(reference: str) -> None:
    if not 1 <= len(reference) <= REFERENCE_LENGTH_MAX or not reference.isprintable():
        raise LedgerChangeInvalid(reason=f"A reference is 1 to {REFERENCE_LENGTH_MAX} printable characters.")


def check_description(description: str | None) -> None:
    if description is not None and (len(description) > DESCRIPTION_LENGTH_MAX or "\0" in description):
        raise LedgerChangeInvalid(
            reason=f"A description is {DESCRIPTION_LENGTH_MAX} characters at the most, none of them NUL."
        )
