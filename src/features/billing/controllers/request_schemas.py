"""Request schemas of billing."""

from typing import Annotated

import msgspec
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg

from features.billing.domain.plan_changes import PREVIEW_PATTERN

Name = Annotated[str, msgspec.Meta(pattern="^[a-z][a-z_]{0,39}$", examples=["growth"])]
Address = Annotated[
    str,
    msgspec.Meta(
        min_length=1, max_length=2_000, description="Where to come back to: an address of the frontend."
    ),
]
PreviewId = Annotated[
    str, msgspec.Meta(pattern=PREVIEW_PATTERN, description="Of the preview that was agreed to.")
]


class RequestBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class CheckoutRequest(RequestBody, frozen=True, kw_only=True):
    plan: Name | None = None
    pack: Name | None = None
    success_url: Address | None = None
    cancel_url: Address | None = None


class PortalRequest(RequestBody, frozen=True, kw_only=True):
    return_url: Address | None = None


class PreviewRequest(RequestBody, frozen=True, kw_only=True):
    plan: Name


class Patch(RequestBody, frozen=True, kw_only=True):
    plan: Name
    preview_id: PreviewId


CheckoutBody = Annotated[
    CheckoutRequest,
    BodyKwarg(description="Either `plan` or `pack`.", examples=[Example(value={"pack": "small"})]),
]
PortalBody = Annotated[PortalRequest, BodyKwarg(examples=[Example(value={})])]
PreviewBody = Annotated[PreviewRequest, BodyKwarg(examples=[Example(value={"plan": "pro"})])]
ChangeBody = Annotated[
    Patch,
    BodyKwarg(
        examples=[
            Example(value={"plan": "pro", "preview_id": "pv_1793525400_0123456789abcdef0123456789abcdef"})
        ]
    ),
]
