from collections.abc import Callable
from datetime import datetime
from typing import LiteralString

from asyncpg import Record

from features.credits.application.ports import CreditReader, EntryFilter, Ledger, LedgerMaintenance
from features.credits.domain.errors import (
    InsufficientCredits,
    ReferenceReused,
    TransactionTypeInvalid,
)
from features.credits.domain.ledger import Balance, Entry, Finding, LedgerChange
from infrastructure.database.clients import AdminClient, Database
from infrastructure.resilience.micro_batcher import MicroBatcher
from shared.caller import AccountNotFound, Caller, no_account
from shared.errors import DomainError
from shared.ids import AccountId

BALANCES: LiteralString = "select * from caller.credit_balances($1, $2)"
BALANCE_AT: LiteralString = """
select a.account_id, coalesce(e.balance_after, 0) as credits_available,
    coalesce(e.held_after, 0) as credits_held
from public.credit_accounts as a
left join lateral (
    select l.balance_after, l.held_after from public.credit_entries as l
    where l.account_id = a.account_id and l.created_at <= $2
    order by l.created_at desc, l.position desc
    limit 1
) as e on true
where a.account_id = $1
"""
# Entries are in order of time, so times become positions and every page costs the same.
ENTRIES: LiteralString = """
select * from public.credit_entries as e
where e.account_id = $1 and e.position < $2 and ($3::text is null or e.kind = $3)
    and ($4::timestamptz is null or e.position >= (
        select s.position from public.credit_entries as s
        where s.account_id = $1 and s.created_at >= $4 order by s.created_at, s.position limit 1
    ))
    and ($5::timestamptz is null or e.position <= (
        select u.position from public.credit_entries as u
        where u.account_id = $1 and u.created_at < $5 order by u.created_at desc, u.position desc limit 1
    ))
order by e.position desc
limit $6
"""
POSITION_MAX = 2**63 - 1

GRANT: LiteralString = "select * from ledger.grant_credits($1, $2, $3, $4, $5, $6)"
SPEND: LiteralString = "select * from ledger.spend($1, $2, $3, $4, $5)"
EXPIRE_LOTS: LiteralString = "select * from ledger.expire_lots($1)"
AUDIT: LiteralString = "select * from ledger.audit()"


class PostgresCreditReader(CreditReader):
    def __init__(self, database: Database) -> None:
        self._database = database
        self._balances = MicroBatcher(self._ask_balances)

    async def _ask_balances(self, callers: list[Caller]) -> list[Record]:
        return await self._database.call_for_many(
            BALANCES,
            [caller.claims for caller in callers],
            [caller.chosen_account for caller in callers],
        )

    async def balance(self, caller: Caller) -> Balance:
        row = await self._balances.ask(caller)
        account_id, credits_available, credits_held, next_lapse_at, accounts_count = row
        if accounts_count != 1:
            raise no_account(caller)
        return Balance(
            account_id=account_id,
            credits_available=credits_available,
            credits_held=credits_held,
            next_expiry_at=next_lapse_at,
        )

    async def balance_at(self, caller: Caller, at: datetime) -> Balance:
        (row,) = await self._database.fetch_for(caller, BALANCE_AT, at)
        return Balance(**row)

    async def entries(
        self, caller: Caller, only: EntryFilter, *, before: int | None, entries_max: int
    ) -> list[Entry]:
        before = POSITION_MAX if before is None else before
        rows = await self._database.fetch_for(
            caller, ENTRIES, before, only.kind, only.since, only.until, entries_max
        )
        return [Entry(**{name: row[name] for name in Entry.__struct_fields__}) for row in rows]


class PostgresLedger(Ledger, LedgerMaintenance):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def grant(
        self,
        account_id: AccountId,
        credits_granted: int,
        *,
        reference: str,
        transaction_type: str,
        expires_at: datetime | None,
        description: str | None,
    ) -> LedgerChange:
        rows = await self._session.fetch(
            GRANT, account_id, credits_granted, reference, transaction_type, expires_at, description
        )
        return _movement(
            rows,
            lambda _: {
                "conflicting": ReferenceReused(reference=reference),
                "unknown_type": TransactionTypeInvalid(transaction_type=transaction_type),
                "wrong_sign": TransactionTypeInvalid(transaction_type=transaction_type),
            },
        )

    async def spend(
        self,
        account_id: AccountId,
        credits_spent: int,
        *,
        reference: str,
        transaction_type: str,
        description: str | None,
    ) -> LedgerChange:
        rows = await self._session.fetch(
            SPEND, account_id, credits_spent, reference, transaction_type, description
        )
        return _movement(
            rows,
            lambda row: {
                "conflicting": ReferenceReused(reference=reference),
                "insufficient": InsufficientCredits(needed=credits_spent, available=row["credits_available"]),
                "unknown_type": TransactionTypeInvalid(transaction_type=transaction_type),
                "wrong_sign": TransactionTypeInvalid(transaction_type=transaction_type),
            },
        )

    async def expire_lots(self, accounts_max: int) -> tuple[int, int]:
        (row,) = await self._session.fetch(EXPIRE_LOTS, accounts_max)
        return row["accounts_swept"], row["credits_expired"]

    async def audit(self) -> list[Finding]:
        return [Finding(**row) for row in await self._session.fetch(AUDIT)]


def _movement(rows: list[Record], refusals: Callable[[Record], dict[str, DomainError]]) -> LedgerChange:
    (row,) = rows
    outcome: str = row["outcome"]
    if outcome not in ("done", "repeated"):
        raise refusals(row).get(outcome) or AccountNotFound()
    return LedgerChange(
        repeated=outcome == "repeated",
        credits_moved=row["credits_moved"],
        credits_available=row["credits_available"],
        credits_held=row["credits_held"],
    )
