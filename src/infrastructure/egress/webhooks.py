import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import ceil

from features.notices.application.ports import Sender
from features.notices.domain.delivery import Answer
from infrastructure.egress.client import EgressClient
from infrastructure.egress.guard import EgressFailed
from shared.ids import AccountId
from shared.ports import Clock


class WebhookSender(Sender):
    def __init__(self, client: EgressClient, now: Clock) -> None:
        self._client = client
        self._now = now

    async def send(self, account_id: AccountId, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        began_at_s = time.monotonic()
        try:
            reply = await self._client.send("POST", url, headers, body, account_id=account_id)
        except EgressFailed as failure:
            return Answer(error=failure.reason, duration_ms=_milliseconds_since(began_at_s))
        return Answer(
            http_status=reply.status,
            retry_after_s=self._seconds(reply.headers.get("retry-after", "")),
            duration_ms=_milliseconds_since(began_at_s),
        )

    def _seconds(self, text: str) -> int | None:
        """Seconds, or a date (RFC 9110, 10.2.3); None when it is neither."""
        if text.isascii() and text.isdigit():
            return int(text[:9])
        try:
            instant = parsedate_to_datetime(text)
        except ValueError:
            return None
        instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        return max(0, ceil((instant - self._now()).total_seconds()))


def _milliseconds_since(began_at_s: float) -> int:
    return round((time.monotonic() - began_at_s) * 1_000)
