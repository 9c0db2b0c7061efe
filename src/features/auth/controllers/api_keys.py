"""Routes for API keys."""

from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

import msgspec
from litestar import Controller, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody
from msgspec import UNSET, UnsetType

from features.auth.application.api_keys import ApiKeys, NewKey
from features.auth.application.ports import KeySettings
from features.auth.controllers.accounts import Name
from features.auth.domain.api_keys import ApiKey, Mode
from features.auth.domain.roles import Scope
from shared.http.parameters import AuthenticatedRequest, Cursor, Limit, RequestBody, TimeField
from shared.http.responses import LOCATION, problems, struct_from
from shared.http.route_policy import needs
from shared.middleware.idempotency import effect_id
from shared.pagination import Page
from shared.timestamps import as_utc

DAY_S = 86_400
READ = needs("api_keys:read")
MANAGE = needs("api_keys:manage")

Scopes = Annotated[list[Scope], msgspec.Meta(min_length=1, max_length=50)]
Project = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,100}$", examples=["proj_0123456789ab"])]
MonthlyLimit = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000_000, examples=[500])]
Overlap = Annotated[
    int, msgspec.Meta(ge=0, le=30 * DAY_S, description="Seconds during which the old key stays valid.")
]


class ApiKeyRequest(RequestBody, frozen=True, kw_only=True):
    name: Name
    scopes: Scopes
    mode: Mode = "live"
    project: Project | None = None
    credits_per_month_max: MonthlyLimit | None = None
    expires_at: TimeField | None = None


class ApiKeyPatch(RequestBody, frozen=True, kw_only=True):
    """Omitted fields keep their values; null removes a monthly limit, an expiry or a project."""

    name: Name | UnsetType = UNSET
    scopes: Scopes | UnsetType = UNSET
    project: Project | UnsetType | None = UNSET
    credits_per_month_max: MonthlyLimit | UnsetType | None = UNSET
    expires_at: TimeField | UnsetType | None = UNSET


class RotationRequest(RequestBody, frozen=True, kw_only=True):
    overlap_seconds: Overlap = DAY_S


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


def api_key_response(key: ApiKey) -> ApiKeyResponse:
    return struct_from(ApiKeyResponse, key)


def _new_key_response(new: NewKey) -> Response[NewApiKeyResponse]:
    created = struct_from(NewApiKeyResponse, new.key, key=new.text)
    return Response(created, headers={"Location": f"/v1/api-keys/{new.key.id}"})


class ApiKeysController(Controller):
    path = "/v1/api-keys"
    tags = ("API keys",)

    @post("/", response_headers=(LOCATION,), opt=MANAGE, responses=problems(402))
    async def create_api_key(
        self,
        request: AuthenticatedRequest,
        data: JSONBody[ApiKeyRequest],
        api_keys: NamedDependency[ApiKeys],
    ) -> Response[NewApiKeyResponse]:
        """Create an API key.

        Only this response contains the full `key`; the server stores its hash. The key has the permissions
        in `scopes` and no others. `credits_per_month_max` limits what it can spend in a calendar month
        (UTC). A `test` key never spends credits.
        """
        settings = struct_from(KeySettings, data, expires_at=as_utc(data.expires_at))
        return _new_key_response(
            await api_keys.create(request.user, effect_id(request.scope), data.mode, settings)
        )

    @get("/", opt=READ)
    async def list_api_keys(
        self,
        request: AuthenticatedRequest,
        api_keys: NamedDependency[ApiKeys],
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[ApiKeyResponse]:
        """List the account's API keys, newest first, including expired and revoked keys.

        `hint` identifies a key.
        """
        page = await api_keys.page(request.user, cursor=cursor, limit=limit)
        return page.map(api_key_response)

    @get("/{key_id:uuid}", opt=READ)
    async def get_api_key(
        self, request: AuthenticatedRequest, key_id: FromPath[UUID], api_keys: NamedDependency[ApiKeys]
    ) -> ApiKeyDetailResponse:
        """Get an API key, with the credits that it and the keys it replaced spent this month."""
        key = await api_keys.get(request.user, key_id)
        credits_spent = await api_keys.credits_spent(key)
        return struct_from(ApiKeyDetailResponse, key, credits_spent_this_month=credits_spent)

    @patch("/{key_id:uuid}", opt=MANAGE, responses=problems(409))
    async def change_api_key(
        self,
        request: AuthenticatedRequest,
        key_id: FromPath[UUID],
        data: JSONBody[ApiKeyPatch],
        api_keys: NamedDependency[ApiKeys],
    ) -> ApiKeyResponse:
        """Change the name, scopes, project, monthly limit or expiry of an API key.

        All processes apply the change within seconds.
        """
        changes = data.sent_fields
        if "expires_at" in changes:
            changes["expires_at"] = as_utc(changes["expires_at"])
        return api_key_response(await api_keys.change(request.user, key_id, changes))

    @post("/{key_id:uuid}/rotate", response_headers=(LOCATION,), opt=MANAGE, responses=problems(402))
    async def rotate_api_key(
        self,
        request: AuthenticatedRequest,
        key_id: FromPath[UUID],
        data: JSONBody[RotationRequest],
        api_keys: NamedDependency[ApiKeys],
    ) -> Response[NewApiKeyResponse]:
        """Create a new API key with the same settings, and end the old one after an overlap.

        Both keys share one monthly limit.
        """
        overlap = timedelta(seconds=data.overlap_seconds)
        return _new_key_response(
            await api_keys.rotate(request.user, key_id, effect_id(request.scope), overlap)
        )

    @delete("/{key_id:uuid}", opt=MANAGE)
    async def revoke_api_key(
        self, request: AuthenticatedRequest, key_id: FromPath[UUID], api_keys: NamedDependency[ApiKeys]
    ) -> None:
        """Revoke an API key.

        Every process rejects it within five seconds. It stays in the list with `revoked_at`. This request
        can be repeated.
        """
        await api_keys.revoke(request.user, key_id)
