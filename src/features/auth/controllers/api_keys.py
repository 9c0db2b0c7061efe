"""HTTP handlers for API keys."""

from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Controller, Request, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg, FromPath

from features.auth.application.api_keys import ApiKeys, NewKey
from features.auth.application.ports import KeySettings
from features.auth.controllers.accounts import Name
from features.auth.domain.api_keys import ApiKey, Mode
from features.auth.domain.roles import Scope
from shared.caller import Caller
from shared.http.pagination_parameters import Cursor, Limit
from shared.http.problems import problem_responses
from shared.http.response_headers import LOCATION
from shared.http.route_policy import needs
from shared.middleware.idempotency import effect_id
from shared.timestamps import as_utc

DAY_S = 86_400

Scopes = Annotated[list[Scope], msgspec.Meta(min_length=1, max_length=50)]
Project = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,100}$", examples=["proj_0123456789ab"])]
Cap = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000_000, examples=[500])]
Expiry = Annotated[datetime, msgspec.Meta(tz=True)]


class ApiKeyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    scopes: Scopes
    mode: Mode = "live"
    project: Project | None = None
    credits_per_month_max: Cap | None = None
    expires_at: Expiry | None = None


class ApiKeyPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Omitted fields keep their values; null removes a cap, an expiry or a project."""

    name: Name | msgspec.UnsetType = msgspec.UNSET
    scopes: Scopes | msgspec.UnsetType = msgspec.UNSET
    project: Project | msgspec.UnsetType | None = msgspec.UNSET
    credits_per_month_max: Cap | msgspec.UnsetType | None = msgspec.UNSET
    expires_at: Expiry | msgspec.UnsetType | None = msgspec.UNSET


class RotationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    overlap_seconds: Annotated[
        int,
        msgspec.Meta(ge=0, le=30 * DAY_S, description="For how long the old key serves on."),
    ] = DAY_S


ApiKeyBody = Annotated[
    ApiKeyRequest,
    BodyKwarg(
        examples=[
            Example(value={"name": "Nightly import", "scopes": ["credits:read", "business_profiles:read"]})
        ]
    ),
]
ApiKeyChangeBody = Annotated[ApiKeyPatch, BodyKwarg(examples=[Example(value={"credits_per_month_max": 500})])]
RotationBody = Annotated[RotationRequest, BodyKwarg(examples=[Example(value={"overlap_seconds": DAY_S})])]


class ApiKeyResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    hint: str
    name: str
    mode: Mode
    scopes: list[Scope]
    project: str | None
    credits_per_month_max: int | None
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    created_by: UUID
    created_at: datetime


class ApiKeyDetailResponse(ApiKeyResponse, frozen=True, kw_only=True):
    credits_spent_this_month: int


class NewApiKeyResponse(ApiKeyResponse, frozen=True, kw_only=True):
    key: str


class ApiKeysResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[ApiKeyResponse]
    next_cursor: str | None


KEY_EXAMPLE = {
    "id": "5f0b7f5e-7a3a-4f0c-9a44-6b9f3b7d2c01",
    "hint": "osl_live_2tYJ5ZQvKqkB7wM0cR9xLd_...",
    "name": "Nightly import",
    "mode": "live",
    "scopes": ["business_profiles:read", "credits:read"],
    "project": None,
    "credits_per_month_max": 500,
    "expires_at": None,
    "revoked_at": None,
    "last_used_at": None,
    "created_by": "0b6bd2b4-65d3-4f5c-a5b3-2f6f2a9d8c11",
    "created_at": "2026-11-01T09:30:00Z",
}
NEW_KEY_EXAMPLE = {**KEY_EXAMPLE, "key": "osl_live_<id>_<secret and checksum>"}
SHOWN = ResponseSpec(ApiKeyResponse, description="The key", examples=[Example(value=KEY_EXAMPLE)])
MADE = ResponseSpec(
    NewApiKeyResponse,
    description="The key, in full this once",
    examples=[Example(value=NEW_KEY_EXAMPLE)],
)


def _fields(key: ApiKey) -> dict[str, Any]:
    return {name: getattr(key, name) for name in ApiKeyResponse.__struct_fields__}


def api_key_out(key: ApiKey) -> ApiKeyResponse:
    return ApiKeyResponse(**_fields(key))


def _made(new: NewKey) -> Response[NewApiKeyResponse]:
    return Response(
        NewApiKeyResponse(**_fields(new.key), key=new.text),
        status_code=201,
        headers={"Location": f"/v1/api-keys/{new.key.id}"},
    )


class ApiKeysController(Controller):
    path = "/v1/api-keys"
    tags = ("API keys",)

    @post(
        "/",
        operation_id="createApiKey",
        summary="Make a key",
        response_headers=(LOCATION,),
        opt=needs("api_keys:manage"),
        responses={201: MADE, **problem_responses(402)},
    )
    async def create(
        self,
        request: Request[Caller, Any, Any],
        data: ApiKeyBody,
        api_keys: NamedDependency[ApiKeys],
    ) -> Response[NewApiKeyResponse]:
        """Make a key for a program. `key` is shown now and never again: only its hash is kept.

        A key does what its `scopes` say and nothing else. `credits_per_month_max` caps what it may spend
        in a calendar month (UTC). A `test` key never spends.
        """
        settings = KeySettings(
            name=data.name,
            scopes=data.scopes,
            project=data.project,
            credits_per_month_max=data.credits_per_month_max,
            expires_at=as_utc(data.expires_at),
        )
        return _made(await api_keys.create(request.user, effect_id(request.scope), data.mode, settings))

    @get(
        "/",
        operation_id="listApiKeys",
        summary="Keys",
        opt=needs("api_keys:read"),
        responses={
            200: ResponseSpec(
                ApiKeysResponse,
                description="A page",
                examples=[Example(value={"items": [KEY_EXAMPLE], "next_cursor": None})],
            ),
        },
    )
    async def index(
        self,
        request: Request[Caller, Any, Any],
        api_keys: NamedDependency[ApiKeys],
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> ApiKeysResponse:
        """The account's keys, newest first, those that are over too. `hint` is what to recognise one by."""
        page = await api_keys.page(request.user, cursor=cursor, limit=limit)
        return ApiKeysResponse(items=[api_key_out(key) for key in page.items], next_cursor=page.next_cursor)

    @get(
        "/{key_id:uuid}",
        operation_id="getApiKey",
        summary="A key",
        opt=needs("api_keys:read"),
        responses={
            200: ResponseSpec(
                ApiKeyDetailResponse,
                description="The key",
                examples=[Example(value={**KEY_EXAMPLE, "credits_spent_this_month": 12})],
            ),
        },
    )
    async def show(
        self,
        request: Request[Caller, Any, Any],
        key_id: FromPath[UUID],
        api_keys: NamedDependency[ApiKeys],
    ) -> ApiKeyDetailResponse:
        """One key, and what it and those it replaced have spent this month."""
        key = await api_keys.get(request.user, key_id)
        return ApiKeyDetailResponse(
            **_fields(key), credits_spent_this_month=await api_keys.credits_spent(key)
        )

    @patch(
        "/{key_id:uuid}",
        operation_id="changeApiKey",
        summary="Change a key",
        opt=needs("api_keys:manage"),
        responses={200: SHOWN, **problem_responses(409)},
    )
    async def change(
        self,
        request: Request[Caller, Any, Any],
        key_id: FromPath[UUID],
        data: ApiKeyChangeBody,
        api_keys: NamedDependency[ApiKeys],
    ) -> ApiKeyResponse:
        """Change a key's name, scopes, project, cap or expiry. Running processes follow within seconds."""
        changes = {
            name: value for name, value in msgspec.structs.asdict(data).items() if value is not msgspec.UNSET
        }
        if "expires_at" in changes:
            changes["expires_at"] = as_utc(changes["expires_at"])
        return api_key_out(await api_keys.change(request.user, key_id, changes))

    @post(
        "/{key_id:uuid}/rotate",
        operation_id="rotateApiKey",
        summary="Rotate a key",
        response_headers=(LOCATION,),
        opt=needs("api_keys:manage"),
        responses={201: MADE, **problem_responses(402)},
    )
    async def rotate(
        self,
        request: Request[Caller, Any, Any],
        key_id: FromPath[UUID],
        data: RotationBody,
        api_keys: NamedDependency[ApiKeys],
    ) -> Response[NewApiKeyResponse]:
        """Make a new key with the same settings. The old one ends after the overlap.

        Both count against one monthly cap.
        """
        overlap = timedelta(seconds=data.overlap_seconds)
        return _made(await api_keys.rotate(request.user, key_id, effect_id(request.scope), overlap))

    @delete(
        "/{key_id:uuid}",
        operation_id="revokeApiKey",
        summary="Revoke a key",
        opt=needs("api_keys:manage"),
        responses={204: ResponseSpec(None, description="Revoked")},
    )
    async def revoke(
        self,
        request: Request[Caller, Any, Any],
        key_id: FromPath[UUID],
        api_keys: NamedDependency[ApiKeys],
    ) -> None:
        """End a key for good. Every process refuses it within five seconds. Repeatable.

        The key is still shown, with the time of its end.
        """
        await api_keys.revoke(request.user, key_id)
