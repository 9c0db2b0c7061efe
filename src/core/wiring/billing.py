"""Billing use cases on our tables and the Stripe client."""

from dataclasses import dataclass

from core.wiring.resources import Resources
from features.billing.application.catalog import Catalog
from features.billing.application.checkouts import Checkouts
from features.billing.application.invoices import Invoices
from features.billing.application.plan_changes import PlanChanges
from features.billing.application.subscriptions import Subscriptions
from infrastructure.database.billing.queries import PostgresBillingQueries, PostgresOffers, PostgresOrders
from infrastructure.database.billing.subscriptions import PostgresSubscriptionRepository
from infrastructure.payments.stripe_checkout import StripeCheckout
from infrastructure.payments.stripe_queries import StripeQueries
from infrastructure.payments.stripe_subscriptions import StripeSubscriptions


@dataclass(frozen=True, slots=True)
class BillingUseCases:
    catalogue: Catalog
    checkouts: Checkouts
    subscriptions: Subscriptions
    changes: PlanChanges
    invoices: Invoices


def billing_on(foundation: Resources) -> BillingUseCases:
    desk = foundation.payments.desk
    session = foundation.database.admin("billing")
    views = PostgresBillingQueries(foundation.database)
    records, till = StripeQueries(desk), StripeCheckout(desk)
    catalogue = Catalog(PostgresOffers(session), till)
    frontend_url = foundation.place.settings.frontend_url
    return BillingUseCases(
        catalogue=catalogue,
        checkouts=Checkouts(views, PostgresOrders(session), catalogue, till, records, frontend_url),
        subscriptions=Subscriptions(views),
        changes=PlanChanges(
            *(views, catalogue, records, StripeSubscriptions(desk)),
            *(PostgresSubscriptionRepository(session), foundation.payments.locks),
        ),
        invoices=Invoices(views),
    )
