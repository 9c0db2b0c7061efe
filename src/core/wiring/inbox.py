"""What Stripe tells us: taken in by every process that answers HTTP, worked on by every one that works."""

import asyncio
import random
import time
from dataclasses import dataclass
from datetime import timedelta

from core.attendants import Attendant
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

LOCAL_SECRET = "whsec_local_simulator"  # noqa: S105  opens nothing but a local system
REMEMBERED_FOR_S = 10.0


@dataclass(frozen=True, slots=True)
class Webhooks:
    intake: Intake
    inbox: Inbox


def webhooks_on(foundation: Foundation, records: StripeRecords | None = None) -> Webhooks:
    events = PostgresEvents(foundation.database)
    secrets = WebhookSecrets(foundation.place)
    return Webhooks(
        intake=Intake(events, secrets.current, time.time, foundation.arrivals.set),
        inbox=Inbox(events, records),
    )


def inbox_attendants(foundation: Foundation, records: StripeRecords | None = None) -> dict[str, Attendant]:
    """None of them where there is no Stripe to ask."""
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
        self._secrets: tuple[str, ...] = ()
        self._until_s = 0.0

    async def current(self) -> tuple[str, ...]:
        if time.monotonic() >= self._until_s:
            lookup = self._place.lookup
            given = (
                lookup("STRIPE_WEBHOOK_SECRETS")
                if self._place.secrets is None
                else await asyncio.to_thread(lookup, "STRIPE_WEBHOOK_SECRETS")
            )
            self._secrets = tuple((given or "").replace(",", " ").split()) or self._local()
            self._until_s = time.monotonic() + REMEMBERED_FOR_S
        return self._secrets

    def _local(self) -> tuple[str, ...]:
        settings = self._place.settings
        return (LOCAL_SECRET,) if settings.is_local and "stripe" in settings.providers.simulated else ()
