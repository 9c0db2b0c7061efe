"""Billing: subscriptions and purchases at Stripe, and the events that Stripe sends."""

import random
import time
from datetime import timedelta
from functools import partial

from core.api.health import HealthCheck
from core.api.health_checks import check_stripe
from core.cron.job_runner import HOUR_S, MINUTE_S, JobHandler, summarized
from core.processes.background import BackgroundService
from core.settings.settings import Settings
from core.webhooks.incoming import StripeEventWorker
from core.wiring.providers import provider_mode
from core.wiring.slice import ApiParts, Resources, Slice, WorkerParts
from features.billing.application.catalog import Catalog
from features.billing.application.checkouts import Checkouts
from features.billing.application.invoice_reconciliation import InvoiceReconciliation
from features.billing.application.maintenance_ports import SubscriptionEnds
from features.billing.application.plan_changes import PlanChanges
from features.billing.application.ports import StripeReader
from features.billing.application.queries import Invoices, Subscriptions
from features.billing.application.renewals import Renewals
from features.billing.application.stripe_events.admin import StripeEventAdmin
from features.billing.application.stripe_events.apply import StripeEventEffects
from features.billing.application.stripe_events.backfill import StripeEventBackfill
from features.billing.application.stripe_events.fetch_state import StateFetcher
from features.billing.application.stripe_events.process import StripeEventProcessor
from features.billing.application.stripe_events.receive import StripeEventReceiver
from features.billing.application.subscription_sync import SubscriptionSync
from features.billing.controllers.checkouts import CheckoutsController
from features.billing.controllers.stripe_events import PATH as STRIPE_WEBHOOK_PATH
from features.billing.controllers.stripe_events import InboxController, StripeWebhookController
from features.billing.controllers.subscriptions import SubscriptionsController
from features.operations.domain.jobs import Job
from features.operations.domain.retention import RetentionRule
from infrastructure.database.billing.queries import PostgresBillingQueries, PostgresOffers, PostgresOrders
from infrastructure.database.billing.reconciliation import PostgresReconciliationQueries
from infrastructure.database.billing.stripe_event_queue import (
    CLAIM_FOR,
    PostgresPaymentRecords,
    PostgresStripeEventQueue,
)
from infrastructure.database.billing.stripe_events import PostgresStripeEvents
from infrastructure.database.billing.subscriptions import PostgresSubscriptionRepository
from infrastructure.database.clients import AdminClient, Database
from infrastructure.payments.stripe_checkout import StripeCheckout
from infrastructure.payments.stripe_client import StripeApi
from infrastructure.payments.stripe_queries import StripeQueries
from infrastructure.payments.stripe_subscriptions import StripeSubscriptions
from shared.clock import utc_now

JOBS = (
    Job(
        name="monthly-renewal",
        schedule="0 3 1 * *",
        missed="latest",
        time_limit_s=6 * HOUR_S,
        title="Grant the credits of new periods",
    ),
    Job(
        name="renewal-sweep",
        schedule="0 3 * * *",
        missed="latest",
        time_limit_s=6 * HOUR_S,
        title="Grant the credits of periods that begin today",
    ),
    Job(
        name="subscription-sync",
        schedule="0 */6 * * *",
        missed="latest",
        time_limit_s=2 * HOUR_S,
        title="Compare subscriptions with Stripe",
    ),
    Job(
        name="invoice-reconciliation",
        schedule="0 4 * * *",
        missed="latest",
        time_limit_s=2 * HOUR_S,
        title="Compare invoices with Stripe",
    ),
    Job(
        name="missing-events",
        schedule="10 * * * *",
        missed="latest",
        time_limit_s=30 * MINUTE_S,
        title="Fetch Stripe events that did not arrive",
    ),
)


def _api(resources: Resources) -> ApiParts:
    return ApiParts(
        dependencies={**purchases(resources), **_event_inbox(resources)},
        health_checks={"stripe": health_check(resources.runtime.settings, resources.payments.api)},
    )


def purchases(resources: Resources) -> dict[str, object]:
    stripe, locks = resources.payments.api, resources.payments.locks
    session = resources.database.admin("billing")
    queries = PostgresBillingQueries(resources.database)
    reader, checkout = StripeQueries(stripe), StripeCheckout(stripe)
    catalog = Catalog(PostgresOffers(session), checkout)
    frontend_url = resources.runtime.settings.frontend_url
    subscriptions = PostgresSubscriptionRepository(session)
    return {
        "catalog": catalog,
        "checkouts": Checkouts(queries, PostgresOrders(session), catalog, checkout, reader, frontend_url),
        "subscriptions": Subscriptions(queries),
        "changes": PlanChanges(queries, catalog, reader, StripeSubscriptions(stripe), subscriptions, locks),
        "invoices": Invoices(queries),
    }


def _event_inbox(resources: Resources) -> dict[str, object]:
    events = PostgresStripeEvents(resources.database)
    settings = resources.runtime.rotating_settings()
    return {
        "receiver": StripeEventReceiver(
            events, settings.webhook_secrets, time.time, resources.event_stored.set
        ),
        "inbox": StripeEventAdmin(events, resources.payments.stripe_reader),
    }


def health_check(settings: Settings, stripe: StripeApi) -> HealthCheck:
    mode = provider_mode(settings, "stripe")
    return HealthCheck(mode, partial(check_stripe, stripe, mode))


def _worker(resources: Resources) -> WorkerParts:
    stripe_reader = resources.payments.stripe_reader
    ends = None if stripe_reader is None else StripeSubscriptions(resources.payments.api)
    return WorkerParts(
        job_handlers=job_handlers(resources.database, stripe_reader, ends), services=event_worker(resources)
    )


def job_handlers(
    database: Database, stripe_reader: StripeReader | None, ends: SubscriptionEnds | None
) -> dict[str, JobHandler]:
    """``stripe_reader`` and ``ends`` are None if Stripe is not configured."""
    session = database.admin("cron")
    subscriptions = PostgresSubscriptionRepository(session)
    queries = PostgresReconciliationQueries(session)
    events = StripeEventAdmin(PostgresStripeEvents(database), stripe_reader)
    renewals = summarized(Renewals(subscriptions, stripe_reader).run)
    sync = SubscriptionSync(subscriptions, queries, stripe_reader, ends)
    invoices = InvoiceReconciliation(subscriptions, queries, stripe_reader)
    return {
        "monthly-renewal": renewals,
        "renewal-sweep": renewals,
        "subscription-sync": summarized(sync.run),
        "invoice-reconciliation": summarized(invoices.run),
        "missing-events": summarized(StripeEventBackfill(events, utc_now).run),
    }


def event_worker(resources: Resources) -> dict[str, BackgroundService]:
    """Returns no service if Stripe is not configured: processing an event fetches from Stripe."""
    stripe_reader = resources.payments.stripe_reader
    if stripe_reader is None:
        return {}
    is_live = "_live_" in resources.runtime.settings.providers.keys.get("stripe", "")
    processor = stripe_event_processor(resources.database.admin("billing"), stripe_reader, is_live=is_live)
    return {"stripe_events": StripeEventWorker(processor, resources.event_stored).run}


def stripe_event_processor(
    session: AdminClient,
    stripe_reader: StripeReader,
    *,
    is_live: bool = False,
    claim_for: timedelta = CLAIM_FOR,
) -> StripeEventProcessor:
    repository = PostgresSubscriptionRepository(session)
    return StripeEventProcessor(
        queue=PostgresStripeEventQueue(session, claim_for=claim_for),
        state_fetcher=StateFetcher(stripe_reader, repository, is_live),
        events=StripeEventEffects(repository, PostgresPaymentRecords(session)),
        repository=repository,
        random=random.random,
    )


BILLING = Slice(
    name="billing",
    controllers=(CheckoutsController, SubscriptionsController, StripeWebhookController, InboxController),
    raw_paths=(STRIPE_WEBHOOK_PATH,),
    jobs=JOBS,
    retention={"daily-cleanup": (RetentionRule("public.webhook_events", timedelta(days=400)),)},
    api=_api,
    worker=_worker,
)
