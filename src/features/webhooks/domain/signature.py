"""Standard Webhooks signatures with derived secrets that are never stored."""

import base64
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from features.webhooks.domain.endpoint import EndpointId
from shared.ids import AccountId

SECRET_PREFIX = "whsec_"  # noqa: S105
MESSAGE_PREFIX = "msg_"


@dataclass(frozen=True, slots=True)
class SigningSecrets:
    """Derives one secret per endpoint and version from our key, so a copy of the database cannot sign."""

    key: bytes

    def __repr__(self) -> str:
        return "Secrets()"

    def secret(self, account_id: AccountId, endpoint_id: EndpointId, version: int) -> str:
        return SECRET_PREFIX + base64.b64encode(self.raw(account_id, endpoint_id, version)).decode()

    def raw(self, account_id: AccountId, endpoint_id: EndpointId, version: int) -> bytes:
        return hmac.digest(self.key, f"webhook:{account_id}:{endpoint_id}:{version}".encode(), "sha256")


def webhook_id(message_id: UUID) -> str:
    """The id is the same for all attempts, so receivers can deduplicate by it."""
    return MESSAGE_PREFIX + message_id.hex


def signed_headers(secrets: Iterable[bytes], message_id: UUID, body: bytes, at: datetime) -> dict[str, str]:
    message, seconds = webhook_id(message_id), str(int(at.timestamp()))
    content = f"{message}.{seconds}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(secret, content, "sha256")).decode() for secret in secrets)
    return {
        "webhook-id": message,
        "webhook-timestamp": seconds,
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
