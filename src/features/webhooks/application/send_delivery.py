from dataclasses import dataclass

from features.webhooks.application.ports import Outbox, Sender
from features.webhooks.domain.delivery import ClaimedDelivery, DeliveryDecision
from features.webhooks.domain.endpoint import signing_versions
from features.webhooks.domain.signature import SigningSecrets, signed_headers
from shared.clock import Clock

HEADERS = {"content-type": "application/json", "user-agent": "Oslira-Webhooks/1"}


@dataclass(frozen=True, slots=True)
class SendDelivery:
    """One attempt at one delivery. Delivery is at least once; receivers deduplicate by ``webhook-id``."""

    sender: Sender
    outbox: Outbox
    secrets: SigningSecrets
    now: Clock

    async def deliver(self, due: ClaimedDelivery) -> DeliveryDecision | None:
        """Returns None if another worker has claimed the delivery in the meantime."""
        at, body = self.now(), due.body
        versions = signing_versions(due.secret_version, due.rotated_at, due.claimed_at)
        secrets = [self.secrets.raw(due.account_id, due.endpoint_id, version) for version in versions]
        headers = HEADERS | signed_headers(secrets, due.message_id, body, at)
        response = await self.sender.send(due.account_id, due.url, headers, body)
        decision = due.decide(response)
        return decision if await self.outbox.settle(due, response, decision) else None
