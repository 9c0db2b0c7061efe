from collections.abc import Mapping
from dataclasses import dataclass

from features.business.application.ports import AccountProfiles, ProfileStore
from features.business.domain.errors import BusinessProfileNotFound
from features.business.domain.profile import BusinessProfile, ProfileContent, ProfileId
from shared.caller import Caller
from shared.pagination import Cursor, Page, decode_cursor, page_of


@dataclass(frozen=True, slots=True)
class BusinessProfiles:
    """Business profiles of an account."""

    store: ProfileStore

    async def create(self, caller: Caller, profile_id: ProfileId, content: ProfileContent) -> BusinessProfile:
        """Idempotent by ``profile_id``: an existing profile is returned unchanged."""
        content = content.checked()
        async with self.store.transaction(caller) as profiles:
            allowance = await profiles.allowance()
            existing = await profiles.find(profile_id)
            if existing is not None:
                return existing
            allowance.check_room()
            return await profiles.insert(profile_id, content, created_by=caller.actor)

    async def page(
        self, caller: Caller, *, deleted: bool, cursor: str | None, limit: int
    ) -> Page[BusinessProfile]:
        found = await self.store.list(
            caller, deleted=deleted, after=decode_cursor(cursor), profiles_max=limit + 1
        )
        return page_of(found, limit, lambda profile: Cursor(profile.created_at, profile.id))

    async def get(self, caller: Caller, profile_id: ProfileId) -> BusinessProfile:
        profile = await self.store.get(caller, profile_id)
        if profile is None:
            raise BusinessProfileNotFound
        return profile

    async def change(
        self,
        caller: Caller,
        profile_id: ProfileId,
        fields: Mapping[str, object],
        ideal_customer: Mapping[str, object],
        *,
        expected: frozenset[int] | None,
    ) -> BusinessProfile:
        """Replaces only these fields. The version stays the same if the content does not change."""
        async with self.store.transaction(caller) as profiles:
            profile = await _living(profiles, profile_id)
            profile.check_version(expected)
            content = profile.content.changed(fields, ideal_customer)
            return profile if content == profile.content else await profiles.rewrite(profile, content)

    async def delete(self, caller: Caller, profile_id: ProfileId, *, expected: frozenset[int] | None) -> None:
        async with self.store.transaction(caller) as profiles:
            profile = await _living(profiles, profile_id)
            profile.check_version(expected)
            await profiles.delete(profile)

    async def restore(self, caller: Caller, profile_id: ProfileId) -> BusinessProfile:
        """Idempotent: a profile that is not deleted is returned unchanged."""
        async with self.store.transaction(caller) as profiles:
            allowance = await profiles.allowance()
            profile = await profiles.find(profile_id)
            if profile is None:
                raise BusinessProfileNotFound
            if profile.deleted_at is None:
                return profile
            restored = await profiles.restore(profile)
            if restored is None:
                raise BusinessProfileNotFound
            # Checked last, so that an expired profile raises BusinessProfileNotFound, not the plan's limit.
            allowance.check_room()
            return restored


async def _living(profiles: AccountProfiles, profile_id: ProfileId) -> BusinessProfile:
    profile = await profiles.find(profile_id)
    if profile is None or profile.deleted_at is not None:
        raise BusinessProfileNotFound
    return profile
