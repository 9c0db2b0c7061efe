from dataclasses import dataclass
from datetime import datetime

from features.credits.application.ports import Ledger
from features.credits.domain.ledger import LedgerChange, check_credits, check_description, check_reference
from shared.ids import AccountId


@dataclass(frozen=True, slots=True)
class Grants:
    ledger: Ledger

    async def grant(
        self,
        account_id: AccountId,
        credits_granted: int,
        *,
        reference: str,
        transaction_type: str,
        expires_at: datetime | None = None,
        description: str | None = None,
    ) -> LedgerChange:
        """Open a lot of new credits. The transaction type determines the kind of the lot."""
        check_credits(credits_granted)
        check_reference(reference)
        check_description(description)
        return await self.ledger.grant(
            account_id,
            credits_granted,
            reference=reference,
            transaction_type=transaction_type,
            expires_at=expires_at,
            description=description,
        )
