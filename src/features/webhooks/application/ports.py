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
    """Kept by whoever sends."""

    def objection(self, url: str) -> str | None:
        """Why nothing is ever sent there, for people; None when it may be. Nobody is asked for the host's
        address, which may change: that is looked at whenever something is sent.
        """
        ...

    def host(self, url: str) -> str:
        """With its port, of an address without objections."""
        ...


class Sender(Protocol):
    async def send(
        self, account_id: AccountId, url: str, headers: Mapping[str, str], body: bytes
    ) -> DeliveryResponse:
        """One request, once, for this account. Whatever goes wrong is told, not raised."""
        ...


class EndpointStore(Protocol):
    """Reads raise AccountNotFound or AccountNotChosen; whether the caller may write was decided before."""

    async def get(self, caller: Caller, endpoint_id: EndpointId) -> Endpoint | None: ...

    async def list(self, caller: Caller, *, after: Cursor | None, endpoints_max: int) -> list[Endpoint]:
        """Newest first, from behind the place."""
        ...

    async def add(
        self,
        account_id: AccountId,
        endpoint_id: EndpointId,
        content: EndpointContent,
        host: str,
        created_by: str,
    ) -> Endpoint:
        """What is there under this id is returned as it is. Raises TooManyEndpoints."""
        ...

    async def change(self, endpoint: Endpoint, content: EndpointContent, host: str) -> Endpoint | None: ...

    async def rotate(self, endpoint: Endpoint, rotation_id: UUID) -> Endpoint | None:
        """A rotation that was made already is not made again."""
        ...

    async def enable(self, endpoint: Endpoint) -> Endpoint | None: ...

    async def disable(self, endpoint: Endpoint) -> Endpoint | None:
        """What waits for it has failed."""
        ...

    async def remove(self, account_id: AccountId, endpoint_id: EndpointId) -> bool: ...


class DeliveryFilter(msgspec.Struct, frozen=True, kw_only=True):
    endpoint_id: EndpointId | None = None
    status: DeliveryStatus | None = None


class DeliveryStore(Protocol):
    """The same about reads and writes."""

    async def get(self, caller: Caller, delivery_id: DeliveryId) -> DeliveryWithAttempts | None: ...

    async def list(
        self, caller: Caller, only: DeliveryFilter, *, after: Cursor | None, deliveries_max: int
    ) -> list[Delivery]: ...

    async def test(self, endpoint: Endpoint, notice_id: UUID) -> Delivery:
        """A notice for this endpoint alone; the same id again, the same delivery. Raises EndpointNotFound."""
        ...

    async def replay(self, delivery: Delivery) -> Delivery | None:
        """As if it were new. One that waits is due now; one that is under way is left alone."""
        ...

    async def replay_failed(self, endpoint: Endpoint, since: datetime, until: datetime | None) -> int:
        """Those that failed or are dead; how many."""
        ...


class Outbox(Protocol):
    async def claim(
        self, deliveries_max: int, *, apiece_max: int, lease: timedelta
    ) -> Sequence[ClaimedDelivery]:
        """They are the caller's until the lease ends. ``apiece_max``: for one account; one host may have
        twice as many.
        """
        ...

    async def settle(self, due: ClaimedDelivery, answer: DeliveryResponse, verdict: DeliveryDecision) -> bool:
        """False: somebody else has it by now, and nothing was changed."""
        ...
