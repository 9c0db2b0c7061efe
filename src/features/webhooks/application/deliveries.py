from dataclasses import dataclass
from datetime import datetime

from features.webhooks.application.ports import DeliveryFilter, DeliveryStore, EndpointStore
from features.webhooks.domain.delivery import Delivery, DeliveryId, DeliveryWithAttempts
from features.webhooks.domain.endpoint import Endpoint, EndpointId
from features.webhooks.domain.errors import DeliveryNotFound, EndpointDisabled, EndpointNotFound
from shared.caller import Caller
from shared.pagination import Cursor, Page, decode_cursor, page_of


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Lists, reads and replays the deliveries to an account's endpoints."""

    store: DeliveryStore
    endpoints: EndpointStore

    async def page(
        self, caller: Caller, only: DeliveryFilter, *, cursor: str | None, limit: int
    ) -> Page[Delivery]:
        found = await self.store.list(caller, only, after=decode_cursor(cursor), deliveries_max=limit + 1)
        return page_of(found, limit, lambda delivery: Cursor(delivery.created_at, delivery.id))

    async def get(self, caller: Caller, delivery_id: DeliveryId) -> DeliveryWithAttempts:
        known = await self.store.get(caller, delivery_id)
        if known is None:
            raise DeliveryNotFound
        return known

    async def replay(self, caller: Caller, delivery_id: DeliveryId) -> Delivery:
        """Requeues the delivery with a fresh set of attempts. Idempotent: a pending delivery stays queued
        once.
        """
        delivery = (await self.get(caller, delivery_id)).delivery
        await self._active(caller, delivery.endpoint_id)
        replayed = await self.store.replay(delivery)
        if replayed is None:
            raise DeliveryNotFound
        return replayed

    async def replay_failed(
        self, caller: Caller, endpoint_id: EndpointId, *, since: datetime, until: datetime | None
    ) -> int:
        """Requeues the failed and dead deliveries of the interval and returns their number."""
        endpoint = await self._active(caller, endpoint_id)
        return await self.store.replay_failed(endpoint, since, until)

    async def _active(self, caller: Caller, endpoint_id: EndpointId) -> Endpoint:
        endpoint = await self.endpoints.get(caller, endpoint_id)
        if endpoint is None:
            raise EndpointNotFound
        if not endpoint.is_active:
            raise EndpointDisabled
        return endpoint
