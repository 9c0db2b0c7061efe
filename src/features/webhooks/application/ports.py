from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

import msgspec

from features.webhooks.domain.delivery import (
    ClaimedDelivery,
    Delivery,
    DeliveryDecision,
    DeliveryId,
    DeliveryResponse,
    DeliveryStatus,
    DeliveryWithAttempts,
)
from features.webhooks.domain.endpoint import Endpoint, EndpointContent, EndpointId
from shared.caller import Caller
from shared.ids import AccountId
from shared.pagination import Cursor


class DestinationPolicy(Protocol):
    """Rules for destination URLs, implemented by the SSRF guard."""

    def objection(self, url: str) -> str | None:
        """Returns the reason, as text for people, why the URL is never allowed, or None. Does not resolve the
        host, because its IP address may change; the sender checks that on every request.
        """
        ...

    def host(self, url: str) -> str:
        """Returns host and port of a URL that has no objection."""
        ...


class Sender(Protocol):
    async def send(
        self, account_id: AccountId, url: str, headers: Mapping[str, str], body: bytes
    ) -> DeliveryResponse:
        """Sends one request for this account, without retries. Returns failures as a DeliveryResponse and
        does not raise.
        """
        ...


class EndpointStore(Protocol):
    """Reads raise AccountNotFound or AccountNotChosen. Writes expect an authorized caller."""

    async def get(self, caller: Caller, endpoint_id: EndpointId) -> Endpoint | None: ...

    async def list(self, caller: Caller, *, after: Cursor | None, endpoints_max: int) -> list[Endpoint]:
        """Newest first, starting after the cursor."""
        ...

    async def add(
        self,
        account_id: AccountId,
        endpoint_id: EndpointId,
        content: EndpointContent,
        host: str,
        created_by: str,
    ) -> Endpoint:
        """Idempotent by ``endpoint_id``: returns an existing endpoint unchanged. Raises TooManyEndpoints."""
        ...

    async def change(self, endpoint: Endpoint, content: EndpointContent, host: str) -> Endpoint | None: ...

    async def rotate(self, endpoint: Endpoint, rotation_id: UUID) -> Endpoint | None:
        """Idempotent by ``rotation_id``."""
        ...

    async def enable(self, endpoint: Endpoint) -> Endpoint | None: ...

    async def disable(self, endpoint: Endpoint) -> Endpoint | None:
        """Marks the endpoint's pending deliveries as failed."""
        ...

    async def remove(self, account_id: AccountId, endpoint_id: EndpointId) -> bool: ...


class DeliveryFilter(msgspec.Struct, frozen=True, kw_only=True):
    endpoint_id: EndpointId | None = None
    status: DeliveryStatus | None = None


class DeliveryStore(Protocol):
    """Reads and writes follow the rules of EndpointStore."""

    async def get(self, caller: Caller, delivery_id: DeliveryId) -> DeliveryWithAttempts | None: ...

    async def list(
        self, caller: Caller, only: DeliveryFilter, *, after: Cursor | None, deliveries_max: int
    ) -> list[Delivery]: ...

    async def test(self, endpoint: Endpoint, message_id: UUID) -> Delivery:
        """Adds a message for this endpoint only. Idempotent by ``message_id``. Raises EndpointNotFound."""
        ...

    async def replay(self, delivery: Delivery) -> Delivery | None:
        """Resets the attempts. A pending delivery becomes due now; a claimed delivery is not changed."""
        ...

    async def replay_failed(self, endpoint: Endpoint, since: datetime, until: datetime | None) -> int:
        """Requeues failed and dead deliveries and returns their number."""
        ...


class Outbox(Protocol):
    async def claim(
        self, deliveries_max: int, *, per_account_max: int, lease: timedelta
    ) -> Sequence[ClaimedDelivery]:
        """Leases due deliveries to the caller. ``per_account_max`` limits the claims per account; a host may
        have twice as many.
        """
        ...

    async def settle(
        self, due: ClaimedDelivery, response: DeliveryResponse, decision: DeliveryDecision
    ) -> bool:
        """Returns False, without a change, if another worker has claimed the delivery since."""
        ...
