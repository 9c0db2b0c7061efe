"""Request schemas of the webhook routes."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg
from msgspec import UNSET, UnsetType

from features.webhooks.domain.endpoint import (
    DESCRIPTION_LENGTH_MAX,
    URL_LENGTH_MAX,
    EndpointContent,
    NoticeType,
)

URL_PATTERN = r"^https?://[A-Za-z0-9.\[\]:-]+([/?][!-~]*)?$"
LINE_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]*$"


def _text(length_max: int, pattern: str, description: str, least: int) -> msgspec.Meta:
    """The pattern only documents the schema: the problem raised by our own check is clearer than a decoder
    error.
    """
    return msgspec.Meta(
        min_length=least,
        max_length=length_max,
        description=description,
        extra_json_schema={"description": description, "extra": {"pattern": pattern}},
    )


Url = Annotated[
    str,
    _text(
        URL_LENGTH_MAX,
        URL_PATTERN,
        "A public https address without user or password, on port 443, 8443, 80 or 8080.",
        1,
    ),
]
Types = Annotated[list[NoticeType], msgspec.Meta(max_length=20, description="None: all there are.")]
Description = Annotated[str, _text(DESCRIPTION_LENGTH_MAX, LINE_PATTERN, "For yourselves.", 0)]
Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class WebhookEndpointRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: Url
    types: Types = []
    description: Description | None = None

    @property
    def content(self) -> EndpointContent:
        return EndpointContent(url=self.url, types=tuple(self.types), description=self.description)


class WebhookEndpointPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields that are not sent keep their values."""

    url: Url | UnsetType = UNSET
    types: Types | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET

    @property
    def fields(self) -> dict[str, Any]:
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET}


class WebhookReplaysRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    since: Annotated[Instant, msgspec.Meta(description="When the oldest of them happened.")]
    until: Annotated[Instant, msgspec.Meta(description="Before which the latest happened.")] | None = None


ENDPOINT_BODY_EXAMPLE: dict[str, Any] = {
    "url": "https://hooks.alpine-coffee.example/oslira",
    "types": ["run.completed", "run.failed", "credits.low"],
    "description": "Our back office",
}
EndpointBody = Annotated[WebhookEndpointRequest, BodyKwarg(examples=[Example(value=ENDPOINT_BODY_EXAMPLE)])]
EndpointChangesBody = Annotated[
    WebhookEndpointPatch, BodyKwarg(examples=[Example(value={"types": ["bulk.completed"]})])
]
ReplaysBody = Annotated[
    WebhookReplaysRequest, BodyKwarg(examples=[Example(value={"since": "2026-11-01T00:00:00Z"})])
]
