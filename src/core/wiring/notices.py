"""Notices to tenants' endpoints: how they are arranged, and who carries them."""

from dataclasses import dataclass
from ipaddress import ip_network

from core.notices.courier import Courier
from core.settings import Settings
from core.wiring.foundation import Foundation
from core.wiring.providers import utc_now
from features.notices.application.deliveries import Deliveries
from features.notices.application.dispatch import Dispatch
from features.notices.application.endpoints import Endpoints
from features.notices.domain.signature import Secrets
from infrastructure.database.notice_deliveries import PostgresDeliveries
from infrastructure.database.notice_endpoints import PostgresEndpoints
from infrastructure.database.outbox import PostgresOutbox
from infrastructure.database.sessions import Database
from infrastructure.egress.client import EgressClient
from infrastructure.egress.guard import Guard
from infrastructure.egress.lookups import Lookups
from infrastructure.egress.policy import EgressPolicy
from infrastructure.egress.webhooks import WebhookSender
from infrastructure.secrets.local_key import local_key


@dataclass(frozen=True, slots=True)
class Notices:
    endpoints: Endpoints
    deliveries: Deliveries


def egress_policy(settings: Settings) -> EgressPolicy:
    """On a laptop receivers listen on any port, without a certificate."""
    if not settings.is_local:
        return EgressPolicy()
    allowed = tuple(ip_network(text) for text in settings.notices.egress_allow)
    return EgressPolicy(https_only=False, ports=None, allowed=allowed)


def notices_of(settings: Settings, database: Database) -> Notices:
    endpoints, deliveries = PostgresEndpoints(database), PostgresDeliveries(database)
    return Notices(
        endpoints=Endpoints(endpoints, deliveries, _guard(settings), _secrets(settings)),
        deliveries=Deliveries(deliveries, endpoints),
    )


def courier_on(foundation: Foundation) -> Courier:
    settings = foundation.place.settings
    outbox = PostgresOutbox(foundation.database.admin("webhook courier"))
    client = EgressClient(_guard(settings))  # keeps nothing open between two requests
    sender = WebhookSender(client, utc_now)
    return Courier(outbox, Dispatch(sender, outbox, _secrets(settings), utc_now))


def _guard(settings: Settings) -> Guard:
    return Guard(egress_policy(settings), Lookups().resolve)


def _secrets(settings: Settings) -> Secrets:
    given = settings.notices.signing_key
    return Secrets(given.encode() if given else local_key(settings.data_dir / "webhooks" / "signing.key"))
