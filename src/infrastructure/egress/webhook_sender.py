import time
from collections.abc import Mapping
from math import ceil

from features.webhooks.application.ports import Sender
from features.webhooks.domain.delivery import DeliveryResponse
from infrastructure.egress.client import EgressClient
from infrastructure.egress.ssrf_guard import EgressFailed
from shared.clock import Clock
from shared.ids import AccountId
from shared.retry import retry_after_s


class WebhookSender(Sender):
    def __init__(self, client: EgressClient, now: Clock) -> None:
        self._client = client
        self._now = now

    async def send(
        self, account_id: AccountId, url: str, headers: Mapping[str, str], body: bytes
    ) -> DeliveryResponse:
        began_at_s = time.monotonic()
        try:
            reply = await self._client.send("POST", url, headers, body, account_id=account_id)
        except EgressFailed as failure:
            return DeliveryResponse(error=failure.reason, duration_ms=_milliseconds_since(began_at_s))
        wait_s = retry_after_s(reply.headers.get("retry-after"), now=self._now())
        return DeliveryResponse(
            http_status=reply.status,
            retry_after_s=None if wait_s is None else ceil(wait_s),
            duration_ms=_milliseconds_since(began_at_s),
        )


def _milliseconds_since(began_at_s: float) -> int:
    return round((time.monotonic() - began_at_s) * 1_000)
