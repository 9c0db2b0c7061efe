"""Webhook endpoint of an account."""

import re
from datetime import datetime, timedelta
from typing import Literal, NewType, get_args
from uuid import UUID

import msgspec

from features.webhooks.domain.errors import DescriptionInvalid
from shared.ids import AccountId

EndpointId = NewType("EndpointId", UUID)

NoticeType = Literal[
    "run.completed", "run.failed", "run.cancelled", "bulk.completed", "credits.low", "batch.completed"
]
TYPES: tuple[NoticeType, ...] = get_args(NoticeType)
TEST_TYPE = "endpoint.test"  # sent to one endpoint on request, regardless of its types
EndpointStatus = Literal["active", "disabled"]
DisabledReason = Literal["gone", "failing", "by_hand"]

ENDPOINTS_MAX = 10
URL_LENGTH_MAX = 2_000
DESCRIPTION_LENGTH_MAX = 200
# During the overlap both secrets sign, so that the tenant has time to update all receivers.
ROTATION_OVERLAP = timedelta(hours=24)

_NOT_IN_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    account_id: AccountId
    id: EndpointId
    url: str
    types: tuple[str, ...]  # empty: all types
    description: str | None
    status: EndpointStatus
    disabled_reason: DisabledReason | None
    secret_version: int
    rotated_at: datetime | None
    failing_since: datetime | None
    created_by: str
    created_at: datetime
    updated_at: datetime

    @property
    def is_active(self) -> bool:
        return self.status == "active"


class EndpointContent(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of an endpoint that the tenant sets."""

    url: str
    types: tuple[str, ...] = ()
    description: str | None = None

    def checked(self) -> "EndpointContent":
        """Removes duplicate types and replaces a blank description by None. The DestinationPolicy checks the
        URL. Raises DescriptionInvalid.
        """
        text = (self.description or "").strip()
        if _NOT_IN_A_LINE.search(text):
            raise DescriptionInvalid
        return msgspec.structs.replace(self, types=tuple(dict.fromkeys(self.types)), description=text or None)


def signing_versions(version: int, rotated_at: datetime | None, at: datetime) -> tuple[int, ...]:
    """Returns the secret versions that sign, newest first."""
    is_overlap = version > 1 and rotated_at is not None and at < rotated_at + ROTATION_OVERLAP
    return (version, version - 1) if is_overlap else (version,)
