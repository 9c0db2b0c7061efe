"""What Stripe tells us: taken in by every process that answers HTTP, worked on by every one that works."""

import asyncio
import random
import time
from dataclasses import dataclass
from datetime import timedelta

from core.attendants import Attendant
from core.settings import read_settings
from core.webhooks.consumer import EventConsumer
from core.wiring.foundation import Foundation
from core.wiring.place import Surroundings
from features.billing.application.consumption import Consumption
from features.billing.application.events import StripeEvents
from features.billing.application.findings import Looks
from features.billing.application.inbox import Inbox
from features.billing.application.intake import Intake
from features.billing.application.ports import StripeRecords
from infrastructure.database.billing_book import PostgresBillingBook
from infrastructure.database.inbox import CLAIM_FOR, PostgresEventLine, PostgresPaymentNotes
from infrastructure.database.inbox_reads import PostgresEvents
from infrastructure.database.sessions import AdminSession

REMEMBERED_FOR_S = 10.0


@dataclass(frozen=True, slots=True)
class Webhooks:
    intake: Intake
    inbox: Inbox


def webhooks_on(foundation: Foundation) -> Webhooks:
    events = PostgresEvents(foundation.database)
    secrets = WebhookSecrets(foundation.place)
    return Webhooks(
        intake=Intake(events, secrets.current, time.time, foundation.arrivals.set),
        inbox=Inbox(events, foundation.payments.records),
    )


def inbox_attendants(foundation: Foundation) -> dict[str, Attendant]:
    """None of them where there is no Stripe to ask."""
    records = foundation.payments.records
    if records is None:
        return {}
    session = foundation.database.admin("billing")
    is_live = "_live_" in foundation.place.settings.providers.keys.get("stripe", "")
    consumption = consumption_on(session, records, is_live=is_live)
    return {"inbox": EventConsumer(consumption, foundation.arrivals).attend}


def consumption_on(
    session: AdminSession, records: StripeRecords, *, is_live: bool = False, claim_for: timedelta = CLAIM_FOR
) -> Consumption:
    book = PostgresBillingBook(session)
    return Consumption(
        line=PostgresEventLine(session, claim_for=claim_for),
        looks=Looks(records, book, is_live),
        events=StripeEvents(book, PostgresPaymentNotes(session)),
        book=book,
        random=random.random,
    )


class WebhookSecrets:
    """Read anew from the secrets manager now and then: one may have been exchanged for another."""

    def __init__(self, place: Surroundings) -> None:
        self._place = place
        self._secrets = place.settings.webhook_secrets
        self._until_s = time.monotonic() + REMEMBERED_FOR_S

    async def current(self) -> tuple[str, ...]:
        if self._place.secrets is not None and time.monotonic() >= self._until_s:
            self._until_s = time.monotonic() + REMEMBERED_FOR_S
            self._secrets = (await asyncio.to_thread(read_settings, self._place.lookup)).webhook_secrets
        return self._secrets
