from contextlib import AbstractAsyncContextManager
from typing import Protocol

from features.business.domain.profile import Allowance, BusinessProfile, ProfileContent, ProfileId
from shared.caller import Caller
from shared.pagination import Cursor


class AccountProfiles(Protocol):
    """One account's profiles, the deleted ones too, within one transaction."""

    async def allowance(self) -> Allowance:
        """From here on nobody else adds a profile to the account until the transaction ends."""
        ...

    async def find(self, profile_id: ProfileId) -> BusinessProfile | None:
        """Locks it: what is found stays so until the transaction ends."""
        ...

    async def insert(
        self, profile_id: ProfileId, content: ProfileContent, *, created_by: str
    ) -> BusinessProfile: ...

    async def rewrite(self, profile: BusinessProfile, content: ProfileContent) -> BusinessProfile: ...

    async def delete(self, profile: BusinessProfile) -> None:
        """Only marks it; a cron removes it when it can no longer be restored."""
        ...

    async def restore(self, profile: BusinessProfile) -> BusinessProfile | None:
        """None when its time is over."""
        ...


class ProfileStore(Protocol):
    """What a caller may see and change. Raises AccountNotFound or AccountNotChosen."""

    async def get(self, caller: Caller, profile_id: ProfileId) -> BusinessProfile | None:
        """None also when it is deleted."""
        ...

    async def list(
        self, caller: Caller, *, deleted: bool, after: Cursor | None, profiles_max: int
    ) -> list[BusinessProfile]:
        """Newest first, from behind the place. ``deleted``: those that can be restored instead."""
        ...

    def transaction(self, caller: Caller) -> AbstractAsyncContextManager[AccountProfiles]: ...
