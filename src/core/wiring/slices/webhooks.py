"""Outgoing webhooks: endpoint and delivery use cases, and the worker that sends messages."""

from datetime import timedelta
from ipaddress import ip_network

from core.settings.settings import Settings
from core.webhooks.outgoing import WebhookDeliveryWorker
from core.wiring.slice import ApiParts, Resources, Slice, WorkerParts
from features.operations.domain.retention import RetentionRule
from features.webhooks.application.deliveries import Deliveries
from features.webhooks.application.endpoints import Endpoints
from features.webhooks.application.send_delivery import SendDelivery
from features.webhooks.controllers.deliveries import DeliveriesController
from features.webhooks.controllers.endpoints import EndpointsController
from features.webhooks.domain.signature import SigningSecrets
from infrastructure.database.webhooks.deliveries import PostgresDeliveries
from infrastructure.database.webhooks.endpoints import PostgresEndpoints
from infrastructure.database.webhooks.outbox import PostgresOutbox
from infrastructure.egress.client import EgressClient
from infrastructure.egress.ip_policy import IpPolicy
from infrastructure.egress.lookups import Lookups
from infrastructure.egress.ssrf_guard import SsrfGuard
from infrastructure.egress.webhook_sender import WebhookSender
from infrastructure.secrets.local_key import local_key
from shared.clock import utc_now


def egress_policy(settings: Settings) -> IpPolicy:
    """A local environment allows any port and plain HTTP, because local receivers have no certificate."""
    if not settings.is_local:
        return IpPolicy()
    allowed = tuple(ip_network(text) for text in settings.webhooks.egress_allow)
    return IpPolicy(https_only=False, ports=None, allowed=allowed)


def _api(resources: Resources) -> ApiParts:
    settings = resources.runtime.settings
    endpoints, deliveries = PostgresEndpoints(resources.database), PostgresDeliveries(resources.database)
    return ApiParts(
        dependencies={
            "webhook_endpoints": Endpoints(endpoints, deliveries, _guard(settings), _secrets(settings)),
            "webhook_deliveries": Deliveries(deliveries, endpoints),
        }
    )


def delivery_worker(resources: Resources) -> WebhookDeliveryWorker:
    settings = resources.runtime.settings
    outbox = PostgresOutbox(resources.database.admin("webhook deliveries"))
    client = EgressClient(_guard(settings))  # keeps no connection open, so nothing closes it
    sender = WebhookSender(client, utc_now)
    return WebhookDeliveryWorker(outbox, SendDelivery(sender, outbox, _secrets(settings), utc_now))


def _worker(resources: Resources) -> WorkerParts:
    return WorkerParts(services={"webhook_deliveries": delivery_worker(resources).run})


def _guard(settings: Settings) -> SsrfGuard:
    return SsrfGuard(egress_policy(settings), Lookups().resolve)


def _secrets(settings: Settings) -> SigningSecrets:
    key = settings.webhooks.signing_key
    return SigningSecrets(key.encode() if key else local_key(settings.data_dir / "webhooks" / "signing.key"))


WEBHOOKS = Slice(
    name="webhooks",
    controllers=(EndpointsController, DeliveriesController),
    retention={"daily-cleanup": (RetentionRule("public.webhook_messages", timedelta(days=30)),)},
    api=_api,
    worker=_worker,
)
