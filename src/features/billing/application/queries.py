"""Reads of an account's subscription and invoices."""

from dataclasses import dataclass

from features.billing.application.ports import BillingQueries
from features.billing.domain.subscriptions import AccountBilling, Invoice
from shared.caller import Caller
from shared.pagination import Cursor, Page, decode_cursor, page_of


@dataclass(frozen=True, slots=True)
class Subscriptions:
    queries: BillingQueries

    async def current(self, caller: Caller) -> AccountBilling:
        """The account's subscription; an account without a paid plan has the free one."""
        return await self.queries.billing(caller)


@dataclass(frozen=True, slots=True)
class Invoices:
    queries: BillingQueries

    async def page(self, caller: Caller, *, cursor: str | None, limit: int) -> Page[Invoice]:
        found = await self.queries.invoices(caller, after=decode_cursor(cursor), invoices_max=limit + 1)
        return page_of(found, limit, lambda invoice: Cursor(invoice.created_at, invoice.id))
