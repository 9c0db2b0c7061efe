"""Routes for business profiles."""

from typing import Any
from uuid import UUID

from litestar import Controller, Response, delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody

from features.business.application.profiles import BusinessProfiles
from features.business.controllers.schemas import (
    ContextResponse,
    ProfilePatch,
    ProfileRequest,
    ProfileResponse,
    context_response,
    profile_response,
)
from features.business.domain.profile import BusinessProfile, ProfileId
from shared.http.etag import IfMatch, IfNoneMatch, entity_tag, expected_versions, versioned_response
from shared.http.parameters import AuthenticatedRequest, Cursor, Limit
from shared.http.responses import ENTITY_TAG, LOCATION, NOT_MODIFIED, ok, problems
from shared.http.route_policy import needs
from shared.middleware.idempotency import effect_id
from shared.pagination import Page

PATH = "/v1/business-profiles"
WRITE = needs("business_profiles:write")


def _response(profile: BusinessProfile, **headers: str) -> Response[ProfileResponse]:
    return Response(profile_response(profile), headers={**headers, "ETag": entity_tag(profile.version)})


class BusinessProfilesController(Controller):
    path = PATH
    tags = ("Business profiles",)
    opt = needs("business_profiles:read")

    @post("/", opt=WRITE, response_headers=(LOCATION, ENTITY_TAG), responses=problems(402))
    async def create_business_profile(
        self,
        request: AuthenticatedRequest,
        data: JSONBody[ProfileRequest],
        profiles: NamedDependency[BusinessProfiles],
    ) -> Response[ProfileResponse]:
        """Create a business profile: a business and its ideal customers.

        Only the name is required; `completeness` lists the fields that would improve analyses. The plan
        limits the number of profiles.
        """
        new_id = ProfileId(effect_id(request.scope))
        profile = await profiles.create(request.user, new_id, data.content)
        return _response(profile, Location=f"{PATH}/{profile.id}")

    @get("/")
    async def list_business_profiles(
        self,
        request: AuthenticatedRequest,
        profiles: NamedDependency[BusinessProfiles],
        cursor: Cursor = None,
        limit: Limit = 50,
        deleted: FromQuery[bool] = False,  # noqa: FBT002  a query has names
    ) -> Page[ProfileResponse]:
        """List the account's business profiles, newest first.

        `deleted=true` lists only deleted profiles that can be restored.
        """
        page = await profiles.page(request.user, deleted=deleted, cursor=cursor, limit=limit)
        return page.map(profile_response)

    @get(
        "/{profile_id:uuid}",
        response_headers=(ENTITY_TAG,),
        responses={200: ok(ProfileResponse, "The profile; `ETag` is its version"), **NOT_MODIFIED},
    )
    async def get_business_profile(
        self,
        request: AuthenticatedRequest,
        profile_id: FromPath[UUID],
        profiles: NamedDependency[BusinessProfiles],
        if_none_match: IfNoneMatch = None,
    ) -> Response[Any]:
        """Get a business profile.

        Send its `ETag` in `If-None-Match` to get 304 when it has not changed.
        """
        profile = await profiles.get(request.user, ProfileId(profile_id))
        return versioned_response(profile_response(profile), profile.version, if_none_match)

    @patch("/{profile_id:uuid}", opt=WRITE, response_headers=(ENTITY_TAG,), responses=problems(412))
    async def update_business_profile(
        self,
        request: AuthenticatedRequest,
        profile_id: FromPath[UUID],
        data: JSONBody[ProfilePatch],
        profiles: NamedDependency[BusinessProfiles],
        if_match: IfMatch = None,
    ) -> Response[ProfileResponse]:
        """Change a business profile.

        Only the fields in the request change, also within `ideal_customer`; a list replaces the stored list.
        `null` clears a field, `[]` a list.

        Send the `ETag` of your copy in `If-Match` to avoid overwriting a concurrent change: if the version
        differs, the response is 412. A request that changes nothing keeps the version.
        """
        profile = await profiles.change(
            request.user,
            ProfileId(profile_id),
            data.profile_fields,
            data.ideal_customer_fields,
            expected=expected_versions(if_match),
        )
        return _response(profile)

    @delete("/{profile_id:uuid}", opt=WRITE, responses=problems(412))
    async def delete_business_profile(
        self,
        request: AuthenticatedRequest,
        profile_id: FromPath[UUID],
        profiles: NamedDependency[BusinessProfiles],
        if_match: IfMatch = None,
    ) -> None:
        """Delete a business profile.

        It can be restored for 30 days; then it is purged.
        """
        await profiles.delete(request.user, ProfileId(profile_id), expected=expected_versions(if_match))

    @post(
        "/{profile_id:uuid}/restore",
        status_code=200,
        opt=WRITE,
        response_headers=(ENTITY_TAG,),
        responses=problems(402),
    )
    async def restore_business_profile(
        self,
        request: AuthenticatedRequest,
        profile_id: FromPath[UUID],
        profiles: NamedDependency[BusinessProfiles],
    ) -> Response[ProfileResponse]:
        """Restore a business profile that was deleted within the last 30 days, if the plan allows one more.

        A profile that is not deleted stays unchanged.
        """
        return _response(await profiles.restore(request.user, ProfileId(profile_id)))

    @get("/{profile_id:uuid}/context")
    async def get_business_profile_context(
        self,
        request: AuthenticatedRequest,
        profile_id: FromPath[UUID],
        profiles: NamedDependency[BusinessProfiles],
    ) -> ContextResponse:
        """Get the text about the business that precedes every prompt.

        Equal content gives equal bytes, so that providers can cache it.
        """
        return context_response(await profiles.get(request.user, ProfileId(profile_id)))
