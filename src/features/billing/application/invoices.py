from dataclasses import dataclass

from features.billing.application.ports import BillingQueries
from features.billing.domain.subscriptions import Invoice
from shared.caller import Caller
from shared.pagination import Cursor, Page, decode_cursor, page_of


@dataclass(frozen=True, slots=True)
class Invoices:
    queries: BillingQueries

    async def page(self, caller: Caller, *, cursor: str | None, limit: int) -> Page[Invoice]:
        found = await self.queries.invoices(caller, after=decode_cursor(cursor), invoices_max=limit + 1)
        return page_of(found, limit, lambda invoice: Cursor(invoice.created_at, invoice.id))
