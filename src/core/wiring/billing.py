"""Money in: what is sold, and Stripe, which takes it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from core.wiring.foundation import Foundation
from core.wiring.stripe import stripe_of
from features.billing.application.catalogue import Catalogue
from features.billing.application.changes import Changes
from features.billing.application.checkouts import Checkouts
from features.billing.application.invoices import Invoices
from features.billing.application.ports import StripeRecords
from features.billing.application.subscriptions import Subscriptions
from infrastructure.database.billing import PostgresBillingViews, PostgresOffers, PostgresOrders
from infrastructure.database.billing_book import PostgresBillingBook
from infrastructure.payments.stripe_desk import StripeDesk
from infrastructure.payments.stripe_records import StripeLookups
from infrastructure.payments.stripe_terms import StripeTerms
from infrastructure.payments.stripe_till import StripeTill


@dataclass(frozen=True, slots=True)
class Billing:
    desk: StripeDesk
    records: StripeRecords | None  # None: there is no Stripe here
    book: PostgresBillingBook
    catalogue: Catalogue
    checkouts: Checkouts
    subscriptions: Subscriptions
    changes: Changes
    invoices: Invoices


@asynccontextmanager
async def open_billing(foundation: Foundation) -> AsyncGenerator[Billing]:
    desk = StripeDesk(stripe_of(foundation))
    try:
        yield billing_at(foundation, desk)
    finally:
        await desk.close()


def billing_at(foundation: Foundation, desk: StripeDesk) -> Billing:
    session = foundation.database.admin("billing")
    views = PostgresBillingViews(foundation.database)
    records, till = StripeLookups(desk), StripeTill(desk)
    catalogue = Catalogue(PostgresOffers(session), till)
    book = PostgresBillingBook(session)
    frontend_url = foundation.place.settings.frontend_url
    return Billing(
        desk=desk,
        records=records if desk.has_stripe else None,
        book=book,
        catalogue=catalogue,
        checkouts=Checkouts(views, PostgresOrders(session), catalogue, till, records, frontend_url),
        subscriptions=Subscriptions(views),
        changes=Changes(views, catalogue, records, StripeTerms(desk), book),
        invoices=Invoices(views),
    )
