from dataclasses import dataclass

from features.credits.application.ports import LedgerMaintenance
from features.credits.domain.ledger import Finding

ACCOUNTS_PER_SWEEP = 500


@dataclass(frozen=True, slots=True)
class CreditMaintenance:
    """Expiry of lots and consistency checks of the ledger."""

    ledger: LedgerMaintenance

    async def expire(self) -> tuple[int, int]:
        """Expire all lapsed lots in short transactions. Returns the numbers of accounts and credits."""
        accounts_swept = credits_expired = 0
        while True:
            accounts, expired = await self.ledger.expire_lots(ACCOUNTS_PER_SWEEP)
            accounts_swept += accounts
            credits_expired += expired
            if accounts < ACCOUNTS_PER_SWEEP:
                return accounts_swept, credits_expired

    async def audit(self) -> list[Finding]:
        """Compare balances, entries, lots and holds. An empty list means that the ledger is consistent."""
        return await self.ledger.audit()
