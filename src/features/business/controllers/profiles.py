from typing import Any
from uuid import UUID

from litestar import Controller, Request, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import FromPath, FromQuery

from features.business.application.profiles import BusinessProfiles
from features.business.controllers.request_schemas import ProfileBody, ProfileChangesBody
from features.business.controllers.schemas import (
    CONTEXT_EXAMPLE,
    PROFILE_EXAMPLE,
    ContextResponse,
    ProfileResponse,
    ProfilesResponse,
    context_out,
    profile_out,
)
from features.business.domain.profile import BusinessProfile, ProfileId
from shared.caller import Caller
from shared.http.etag import (
    REVALIDATED,
    IfMatch,
    IfNoneMatch,
    entity_tag,
    expected_versions,
    is_known,
)
from shared.http.parameters import Cursor, Limit
from shared.http.problems import problem_responses
from shared.http.response_headers import ENTITY_TAG, LOCATION
from shared.http.route_policy import needs
from shared.middleware.idempotency import effect_id

PATH = "/v1/business-profiles"
WRITE = needs("business_profiles:write")

Profiles = NamedDependency[BusinessProfiles]
Asked = Request[Caller, Any, Any]


def _shows(description: str) -> ResponseSpec:
    return ResponseSpec(ProfileResponse, description=description, examples=[Example(value=PROFILE_EXAMPLE)])


def _answer(
    profile: BusinessProfile, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response[ProfileResponse]:
    tagged = {**(headers or {}), "ETag": entity_tag(profile.version)}
    return Response(profile_out(profile), status_code=status, headers=tagged)


class BusinessProfilesController(Controller):
    path = PATH
    tags = ("Business profiles",)
    opt = needs("business_profiles:read")

    @post(
        "/",
        operation_id="createBusinessProfile",
        summary="Create",
        opt=WRITE,
        response_headers=(LOCATION, ENTITY_TAG),
        responses={
            201: _shows("Created; `Location` is its address, `ETag` its version"),
            **problem_responses(402),
        },
    )
    async def create(
        self, request: Asked, data: ProfileBody, profiles: Profiles
    ) -> Response[ProfileResponse]:
        """Describe a business, and whom it wants to reach. Only the name is needed; `completeness` tells
        what else would help. How many there may be depends on the plan.
        """
        new_id = ProfileId(effect_id(request.scope))
        profile = await profiles.create(request.user, new_id, data.content)
        return _answer(profile, status=201, headers={"Location": f"{PATH}/{profile.id}"})

    @get(
        "/",
        operation_id="listBusinessProfiles",
        summary="List",
        responses={
            200: ResponseSpec(
                ProfilesResponse,
                description="A page",
                examples=[Example(value={"items": [PROFILE_EXAMPLE], "next_cursor": None})],
            ),
        },
    )
    async def page(
        self,
        request: Asked,
        profiles: Profiles,
        cursor: Cursor = None,
        limit: Limit = 50,
        deleted: FromQuery[bool] = False,  # noqa: FBT002  a query has names
    ) -> ProfilesResponse:
        """The account's business profiles, newest first. Follow `next_cursor` until it is null.

        With `deleted=true`, those that were deleted and can still be restored, and no others.
        """
        page = await profiles.page(request.user, deleted=deleted, cursor=cursor, limit=limit)
        return ProfilesResponse(
            items=[profile_out(profile) for profile in page.items], next_cursor=page.next_cursor
        )

    @get(
        "/{profile_id:uuid}",
        operation_id="getBusinessProfile",
        summary="Get",
        response_headers=(ENTITY_TAG,),
        responses={
            200: _shows("The profile; `ETag` is its version"),
            304: ResponseSpec(None, description="What you have still holds"),
        },
    )
    async def read(
        self,
        request: Asked,
        profile_id: FromPath[UUID],
        profiles: Profiles,
        if_none_match: IfNoneMatch = None,
    ) -> Response[ProfileResponse | None]:
        """One business profile. Send its `ETag` in `If-None-Match` to learn only whether it has changed."""
        profile = await profiles.get(request.user, ProfileId(profile_id))
        headers = {**REVALIDATED, "ETag": entity_tag(profile.version)}
        if is_known(if_none_match, profile.version):
            return Response(None, status_code=304, headers=headers)
        return Response(profile_out(profile), headers=headers)

    @patch(
        "/{profile_id:uuid}",
        operation_id="updateBusinessProfile",
        summary="Update",
        opt=WRITE,
        response_headers=(ENTITY_TAG,),
        responses={
            200: _shows("The profile as it is now; `ETag` is its new version"),
            **problem_responses(412),
        },
    )
    async def update(
        self,
        request: Asked,
        profile_id: FromPath[UUID],
        data: ProfileChangesBody,
        profiles: Profiles,
        if_match: IfMatch = None,
    ) -> Response[ProfileResponse]:
        """Change the fields you send and no others, also within `ideal_customer`; a list replaces the old
        list. `null` clears a field, `[]` a list.

        Send the `ETag` you have seen in `If-Match`, and nobody's change is lost: if there was one, the
        answer is 412. A request that changes nothing leaves the version as it is.
        """
        profile = await profiles.change(
            request.user,
            ProfileId(profile_id),
            data.fields,
            data.ideal_customer_fields,
            expected=expected_versions(if_match),
        )
        return _answer(profile)

    @delete(
        "/{profile_id:uuid}",
        operation_id="deleteBusinessProfile",
        summary="Delete",
        opt=WRITE,
        responses={
            204: ResponseSpec(None, description="Deleted"),
            **problem_responses(412),
        },
    )
    async def remove(
        self, request: Asked, profile_id: FromPath[UUID], profiles: Profiles, if_match: IfMatch = None
    ) -> None:
        """Delete a business profile. For 30 days it can be restored; then it is gone for good."""
        await profiles.delete(request.user, ProfileId(profile_id), expected=expected_versions(if_match))

    @post(
        "/{profile_id:uuid}/restore",
        operation_id="restoreBusinessProfile",
        summary="Restore",
        status_code=200,
        opt=WRITE,
        response_headers=(ENTITY_TAG,),
        responses={
            200: _shows("The profile as it is now; `ETag` is its new version"),
            **problem_responses(402),
        },
    )
    async def restore(
        self, request: Asked, profile_id: FromPath[UUID], profiles: Profiles
    ) -> Response[ProfileResponse]:
        """Bring back a profile that was deleted within the last 30 days, if the plan has room for it. One
        that is not deleted stays as it is.
        """
        return _answer(await profiles.restore(request.user, ProfileId(profile_id)))

    @get(
        "/{profile_id:uuid}/context",
        operation_id="getBusinessProfileContext",
        summary="Prompt context",
        responses={
            200: ResponseSpec(
                ContextResponse, description="The prefix", examples=[Example(value=CONTEXT_EXAMPLE)]
            ),
        },
    )
    async def context(
        self, request: Asked, profile_id: FromPath[UUID], profiles: Profiles
    ) -> ContextResponse:
        """What a model is told about the business before every question. The same content gives the same
        bytes, so that providers charge for them in full only once.
        """
        return context_out(await profiles.get(request.user, ProfileId(profile_id)))
