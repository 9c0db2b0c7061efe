"""The ledger with its hold functions, which the engine calls inside its own SQL functions."""

from features.credits.domain.ledger import LedgerChange
from infrastructure.database.credits.ledger import PostgresLedger


class LedgerRejection(Exception):
    """The outcome of a rejected function, with its row."""

    def __init__(self, row):
        super().__init__(row["outcome"])
        self.row = row


class SqlLedger(PostgresLedger):
    async def place_hold(
        self, account_id, credits_held, reference, transaction_type="analysis", api_key_id=None
    ):
        return await self._call(
            "ledger.place_hold($1, $2, $3, $4, null, $5)",
            account_id,
            credits_held,
            reference,
            transaction_type,
            api_key_id,
        )

    async def settle_hold(self, account_id, reference, credits_spent):
        return await self._call("ledger.settle_hold($1, $2, $3)", account_id, reference, credits_spent)

    async def release_hold(self, account_id, reference):
        return await self._call("ledger.release_hold($1, $2)", account_id, reference)

    async def refund(self, account_id, hold_reference, credits_refunded, reference):
        return await self._call(
            "ledger.refund_charge($1, $2, $3, $4)", account_id, hold_reference, credits_refunded, reference
        )

    async def _call(self, function, *arguments):
        (row,) = await self._session.fetch(f"select * from {function}", *arguments)
        if row["outcome"] not in ("done", "repeated"):
            raise LedgerRejection(row)
        return LedgerChange(
            repeated=row["outcome"] == "repeated",
            credits_moved=row["credits_moved"],
            credits_available=row["credits_available"],
            credits_held=row["credits_held"],
        )
