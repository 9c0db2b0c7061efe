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
    catalog: Catalog
    checkouts: Checkouts
    subscriptions: Subscriptions
    changes: PlanChanges
    invoices: Invoices


def billing_on(foundation: Resources) -> BillingUseCases:
    api = foundation.payments.api
    session = foundation.database.admin("billing")
    queries = PostgresBillingQueries(foundation.database)
    stripe_reader, checkout_provider = StripeQueries(api), StripeCheckout(api)
    catalog = Catalog(PostgresOffers(session), checkout_provider)
    frontend_url = foundation.place.settings.frontend_url
    return BillingUseCases(
        catalog=catalog,
        checkouts=Checkouts(
            queries, PostgresOrders(session), catalog, checkout_provider, stripe_reader, frontend_url
        ),
        subscriptions=Subscriptions(queries),
        changes=PlanChanges(
            *(queries, catalog, stripe_reader, StripeSubscriptions(api)),
            *(PostgresSubscriptionRepository(session), foundation.payments.locks),
        ),
        invoices=Invoices(queries),
    )
