from dataclasses import dataclass

from features.billing.application.ports import BillingViews
from features.billing.domain.subscriptions import Invoice
from shared.caller import Caller
from shared.pages import Page, Place, decode_place, page_of


@dataclass(frozen=True, slots=True)
class Invoices:
    views: BillingViews

    async def page(self, caller: Caller, *, cursor: str | None, limit: int) -> Page[Invoice]:
        found = await self.views.invoices(caller, after=decode_place(cursor), invoices_max=limit + 1)
        return page_of(found, limit, lambda invoice: Place(invoice.created_at, invoice.id))
