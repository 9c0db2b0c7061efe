from datetime import datetime
from typing import Protocol

import msgspec

from features.credits.domain.ledger import Balance, Entry, Finding, Kind, LedgerChange
from shared.caller import Caller
from shared.ids import AccountId


class EntryFilter(msgspec.Struct, frozen=True, kw_only=True):
    kind: Kind | None = None
    since: datetime | None = None
    until: datetime | None = None


class CreditReader(Protocol):
    """The part of the ledger that a caller can see. Raises AccountNotFound or AccountNotChosen."""

    async def balance(self, caller: Caller) -> Balance: ...

    async def balance_at(self, caller: Caller, at: datetime) -> Balance: ...

    async def entries(
        self, caller: Caller, only: EntryFilter, *, before: int | None, entries_max: int
    ) -> list[Entry]:
        """Return the entries before the position ``before``, newest first."""
        ...


class Ledger(Protocol):
    """All operations that change credits. Each is idempotent by reference.

    The same reference with other content raises ReferenceReused.
    """

    async def grant(
        self,
        account_id: AccountId,
        credits_granted: int,
        *,
        reference: str,
        transaction_type: str,
        expires_at: datetime | None,
        description: str | None,
    ) -> LedgerChange: ...

    async def spend(
        self,
        account_id: AccountId,
        credits_spent: int,
        *,
        reference: str,
        transaction_type: str,
        description: str | None,
    ) -> LedgerChange: ...


class LedgerMaintenance(Protocol):
    async def expire_lots(self, accounts_max: int) -> tuple[int, int]:
        """Expire the lapsed lots of some accounts. Returns the numbers of accounts and credits."""
        ...

    async def audit(self) -> list[Finding]: ...
