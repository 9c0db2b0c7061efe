"""Incoming Stripe events: the receiver of every API process and the processor of every worker."""

import asyncio
import random
import time
from dataclasses import dataclass
from datetime import timedelta

from core.processes.background import BackgroundService
from core.settings.settings import read_settings
from core.webhooks.incoming import StripeEventWorker
from core.wiring.bootstrap import Runtime
from core.wiring.resources import Resources
from features.billing.application.ports import StripeReader
from features.billing.application.stripe_events.admin import StripeEventAdmin
from features.billing.application.stripe_events.apply import StripeEventEffects
from features.billing.application.stripe_events.fetch_state import StateFetcher
from features.billing.application.stripe_events.process import StripeEventProcessor
from features.billing.application.stripe_events.receive import StripeEventReceiver
from infrastructure.database.billing.stripe_event_queue import (
    CLAIM_FOR,
    PostgresPaymentRecords,
    PostgresStripeEventQueue,
)
from infrastructure.database.billing.stripe_events import PostgresStripeEvents
from infrastructure.database.billing.subscriptions import PostgresSubscriptionRepository
from infrastructure.database.clients import AdminClient

REMEMBERED_FOR_S = 10.0


@dataclass(frozen=True, slots=True)
class StripeEventInbox:
    receiver: StripeEventReceiver
    inbox: StripeEventAdmin


def stripe_event_inbox(foundation: Resources) -> StripeEventInbox:
    events = PostgresStripeEvents(foundation.database)
    secrets = WebhookSecrets(foundation.place)
    return StripeEventInbox(
        receiver=StripeEventReceiver(events, secrets.current, time.time, foundation.arrivals.set),
        inbox=StripeEventAdmin(events, foundation.payments.stripe_reader),
    )


def inbox_attendants(foundation: Resources) -> dict[str, BackgroundService]:
    """Returns no services if Stripe is not configured: events could not be processed without fetching from
    it.
    """
    stripe_reader = foundation.payments.stripe_reader
    if stripe_reader is None:
        return {}
    session = foundation.database.admin("billing")
    is_live = "_live_" in foundation.place.settings.providers.keys.get("stripe", "")
    processor = stripe_event_processor(session, stripe_reader, is_live=is_live)
    return {"inbox": StripeEventWorker(processor, foundation.arrivals).attend}


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


class WebhookSecrets:
    """Webhook secrets, read from the secrets manager again after REMEMBERED_FOR_S, so that a rotated secret
    is accepted.
    """

    def __init__(self, place: Runtime) -> None:
        self._place = place
        self._secrets = place.settings.webhook_secrets
        self._until_s = time.monotonic() + REMEMBERED_FOR_S

    async def current(self) -> tuple[str, ...]:
        if self._place.secrets is not None and time.monotonic() >= self._until_s:
            self._until_s = time.monotonic() + REMEMBERED_FOR_S
            self._secrets = (await asyncio.to_thread(read_settings, self._place.lookup)).webhook_secrets
        return self._secrets
