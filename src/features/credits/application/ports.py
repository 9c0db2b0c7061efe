from datetime import datetime
from typing import Protocol
from uuid import UUID

import msgspec

from features.credits.domain.ledger import Balance, Entry, Finding, Kind, LedgerChange
from shared.caller import Caller
from shared.ids import AccountId


class EntryFilter(msgspec.Struct, frozen=True, kw_only=True):
    kind: Kind | None = None
    since: datetime | None = None
    until: datetime | None = None


class CreditReader(Protocol):
    """What a caller may see of the ledger. Raises AccountNotFound or AccountNotChosen."""

    async def balance(self, caller: Caller) -> Balance: ...

    async def balance_at(self, caller: Caller, at: datetime) -> Balance: ...

    async def entries(
        self, caller: Caller, only: EntryFilter, *, before: int | None, entries_max: int
    ) -> list[Entry]:
        """Newest first, from below the position ``before``."""
        ...


class Ledger(Protocol):
    """Every way in which credits move. Each call may be repeated: the same reference with the same
    content changes nothing, with other content it raises ReferenceReused.
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

    async def place_hold(
        self,
        account_id: AccountId,
        credits_held: int,
        *,
        reference: str,
        transaction_type: str,
        description: str | None,
        api_key_id: UUID | None = None,
    ) -> LedgerChange:
        """With a key, what it spends in a month stays within its cap: ApiKeyCapReached otherwise."""
        ...

    async def settle_hold(
        self, account_id: AccountId, *, reference: str, credits_spent: int
    ) -> LedgerChange: ...

    async def release_hold(self, account_id: AccountId, *, reference: str) -> LedgerChange: ...

    async def refund(
        self,
        account_id: AccountId,
        credits_refunded: int,
        *,
        hold_reference: str,
        reference: str,
        description: str | None,
    ) -> LedgerChange: ...


class LedgerMaintenance(Protocol):
    async def expire_lots(self, accounts_max: int) -> tuple[int, int]:
        """Write off lapsed lots of some accounts; how many accounts and credits it was."""
        ...

    async def audit(self) -> list[Finding]: ...
