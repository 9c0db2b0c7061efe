"""Outgoing webhooks: endpoint and delivery use cases, and the worker that sends messages."""

from dataclasses import dataclass
from ipaddress import ip_network

from core.settings.settings import Settings
from core.webhooks.outgoing import WebhookDeliveryWorker
from core.wiring.providers import utc_now
from core.wiring.resources import Resources
from features.webhooks.application.deliveries import Deliveries
from features.webhooks.application.endpoints import Endpoints
from features.webhooks.application.send_delivery import SendDelivery
from features.webhooks.domain.signature import SigningSecrets
from infrastructure.database.clients import Database
from infrastructure.database.webhooks.deliveries import PostgresDeliveries
from infrastructure.database.webhooks.endpoints import PostgresEndpoints
from infrastructure.database.webhooks.outbox import PostgresOutbox
from infrastructure.egress.client import EgressClient
from infrastructure.egress.ip_policy import IpPolicy
from infrastructure.egress.lookups import Lookups
from infrastructure.egress.ssrf_guard import SsrfGuard
from infrastructure.egress.webhook_sender import WebhookSender
from infrastructure.secrets.local_key import local_key


@dataclass(frozen=True, slots=True)
class WebhookUseCases:
    endpoints: Endpoints
    deliveries: Deliveries


def egress_policy(settings: Settings) -> IpPolicy:
    """A local environment allows any port and plain HTTP, because local receivers have no certificate."""
    if not settings.is_local:
        return IpPolicy()
    allowed = tuple(ip_network(text) for text in settings.notices.egress_allow)
    return IpPolicy(https_only=False, ports=None, allowed=allowed)


def notices_of(settings: Settings, database: Database) -> WebhookUseCases:
    endpoints, deliveries = PostgresEndpoints(database), PostgresDeliveries(database)
    return WebhookUseCases(
        endpoints=Endpoints(endpoints, deliveries, _guard(settings), _secrets(settings)),
        deliveries=Deliveries(deliveries, endpoints),
    )


def courier_on(foundation: Resources) -> WebhookDeliveryWorker:
    settings = foundation.place.settings
    outbox = PostgresOutbox(foundation.database.admin("webhook courier"))
    client = EgressClient(_guard(settings))  # keeps no connection open, so nothing closes it
    sender = WebhookSender(client, utc_now)
    return WebhookDeliveryWorker(outbox, SendDelivery(sender, outbox, _secrets(settings), utc_now))


def _guard(settings: Settings) -> SsrfGuard:
    return SsrfGuard(egress_policy(settings), Lookups().resolve)


def _secrets(settings: Settings) -> SigningSecrets:
    given = settings.notices.signing_key
    return SigningSecrets(
        given.encode() if given else local_key(settings.data_dir / "webhooks" / "signing.key")
    )
