from dataclasses import dataclass

from features.credits.application.ports import Ledger
from features.credits.domain.ledger import LedgerChange, check_credits, check_description, check_reference
from shared.ids import AccountId


@dataclass(frozen=True, slots=True)
class Adjustments:
    """Manual corrections of a balance, positive or negative. Every call is idempotent by ``reference``."""

    ledger: Ledger

    async def adjust(
        self, account_id: AccountId, credits_delta: int, *, reference: str, reason: str
    ) -> LedgerChange:
        """Grant or spend credits. Raises InsufficientCredits when more is removed than is available."""
        check_credits(abs(credits_delta))
        check_reference(reference)
        check_description(reason)
        if credits_delta < 0:
            return await self.ledger.spend(
                account_id,
                -credits_delta,
                reference=reference,
                transaction_type="admin_charge",
                description=reason,
            )
        return await self.ledger.grant(
            account_id,
            credits_delta,
            reference=reference,
            transaction_type="admin_grant",
            expires_at=None,
            description=reason,
        )
