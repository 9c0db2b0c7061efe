from dataclasses import dataclass
from uuid import UUID

from features.credits.application.ports import Ledger
from features.credits.domain.errors import LedgerChangeInvalid
from features.credits.domain.ledger import LedgerChange, check_credits, check_description, check_reference
from shared.ids import AccountId


@dataclass(frozen=True, slots=True)
class Holds:
    """Credits held for work in progress. Every method is idempotent by ``reference``."""

    ledger: Ledger

    async def place(
        self,
        account_id: AccountId,
        credits_held: int,
        *,
        reference: str,
        transaction_type: str,
        description: str | None = None,
        api_key_id: UUID | None = None,
    ) -> LedgerChange:
        """Hold credits. With an API key, its monthly cap applies as well."""
        check_credits(credits_held)
        check_reference(reference)
        check_description(description)
        return await self.ledger.place_hold(
            account_id,
            credits_held,
            reference=reference,
            transaction_type=transaction_type,
            description=description,
            api_key_id=api_key_id,
        )

    async def settle(self, account_id: AccountId, *, reference: str, credits_spent: int) -> LedgerChange:
        """Spend up to the held credits after the work is done; the rest becomes available again."""
        check_reference(reference)
        if credits_spent < 0:
            raise LedgerChangeInvalid(reason="Nothing less than 0 credits can be spent.")
        return await self.ledger.settle_hold(account_id, reference=reference, credits_spent=credits_spent)

    async def release(self, account_id: AccountId, *, reference: str) -> LedgerChange:
        """Make all held credits available again, because the work was not done."""
        check_reference(reference)
        return await self.ledger.release_hold(account_id, reference=reference)

    async def refund(
        self,
        account_id: AccountId,
        credits_refunded: int,
        *,
        hold_reference: str,
        reference: str,
        description: str | None = None,
    ) -> LedgerChange:
        """Return credits of a settled hold to the lots they came from."""
        check_credits(credits_refunded)
        check_reference(hold_reference)
        check_reference(reference)
        check_description(description)
        return await self.ledger.refund(
            account_id,
            credits_refunded,
            hold_reference=hold_reference,
            reference=reference,
            description=description,
        )
