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
        """The balance as the ledger had it at a time. Before the first entry it is zero."""
        return await self.reader.balance_at(caller, at)
