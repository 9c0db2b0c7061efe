from dataclasses import dataclass
from datetime import datetime

from features.credits.application.ports import CreditReader
from features.credits.domain.ledger import Balance
from shared.caller import Caller


@dataclass(frozen=True, slots=True)
class Balances:
    reader: CreditReader

    async def current(self, caller: Caller) -> Balance:
        return await self.reader.balance(caller)

    async def as_of(self, caller: Caller, at: datetime) -> Balance:
        """Return the balance at a past time; it is zero before the first ledger entry."""
        return await self.reader.balance_at(caller, at)
