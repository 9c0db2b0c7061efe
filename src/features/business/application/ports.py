from contextlib import AbstractAsyncContextManager
from typing import Protocol

from features.business.domain.profile import Allowance, BusinessProfile, ProfileContent, ProfileId
from shared.caller import Caller
from shared.pagination import Cursor


class AccountProfiles(Protocol):
    """Profiles of one account, including deleted ones, within one transaction."""

    async def allowance(self) -> Allowance:
        """Locks: no other transaction adds a profile to the account until this one ends."""
        ...

    async def find(self, profile_id: ProfileId) -> BusinessProfile | None:
        """Locks the profile until the transaction ends. Returns None when there is none."""
        ...

    async def insert(
        self, profile_id: ProfileId, content: ProfileContent, *, created_by: str
    ) -> BusinessProfile: ...

    async def rewrite(self, profile: BusinessProfile, content: ProfileContent) -> BusinessProfile: ...

    async def delete(self, profile: BusinessProfile) -> None:
        """Soft-deletes the profile; a cron job purges it when the restore period ends."""
        ...

    async def restore(self, profile: BusinessProfile) -> BusinessProfile | None:
        """Returns None when the restore period is over."""
        ...


class ProfileStore(Protocol):
    """Profiles that the caller may read and change. Raises AccountNotFound or AccountNotChosen."""

    async def get(self, caller: Caller, profile_id: ProfileId) -> BusinessProfile | None:
        """Returns None when the profile does not exist or is deleted."""
        ...

    async def list(
        self, caller: Caller, *, deleted: bool, after: Cursor | None, profiles_max: int
    ) -> list[BusinessProfile]:
        """Newest first, after the cursor. ``deleted`` lists only deleted profiles that can be restored."""
        ...

    def transaction(self, caller: Caller) -> AbstractAsyncContextManager[AccountProfiles]: ...
