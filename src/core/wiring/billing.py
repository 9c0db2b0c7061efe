"""Money in: what is sold, and Stripe, which takes it."""

from dataclasses import dataclass

from core.wiring.foundation import Foundation
from features.billing.application.catalogue import Catalogue
from features.billing.application.changes import Changes
from features.billing.application.checkouts import Checkouts
from features.billing.application.invoices import Invoices
from features.billing.application.subscriptions import Subscriptions
from infrastructure.database.billing import PostgresBillingViews, PostgresOffers, PostgresOrders
from infrastructure.database.billing_book import PostgresBillingBook
from infrastructure.payments.stripe_records import StripeLookups
from infrastructure.payments.stripe_terms import StripeTerms
from infrastructure.payments.stripe_till import StripeTill


@dataclass(frozen=True, slots=True)
class Billing:
    catalogue: Catalogue
    checkouts: Checkouts
    subscriptions: Subscriptions
    changes: Changes
    invoices: Invoices


def billing_on(foundation: Foundation) -> Billing:
    desk = foundation.payments.desk
    session = foundation.database.admin("billing")
    views = PostgresBillingViews(foundation.database)
    records, till = StripeLookups(desk), StripeTill(desk)
    catalogue = Catalogue(PostgresOffers(session), till)
    frontend_url = foundation.place.settings.frontend_url
    return Billing(
        catalogue=catalogue,
        checkouts=Checkouts(views, PostgresOrders(session), catalogue, till, records, frontend_url),
        subscriptions=Subscriptions(views),
        changes=Changes(
            *(views, catalogue, records, StripeTerms(desk)),
            *(PostgresBillingBook(session), foundation.payments.locks),
        ),
        invoices=Invoices(views),
    )
