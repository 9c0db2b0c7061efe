"""Business profiles for runs, read as admin because the run's user may have left the account."""

from typing import LiteralString

from features.business.domain.profile import ProfileContent, ProfileId
from infrastructure.database.business.profiles import profile_of
from infrastructure.database.clients import AdminClient
from shared.ids import AccountId

FIND: LiteralString = """
select * from public.business_profiles where account_id = $1 and id = $2 and deleted_at is null
"""


class PostgresBusinessLookup:
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def content(self, account_id: AccountId, profile_id: ProfileId) -> ProfileContent | None:
        """Returns None when the profile does not exist or is deleted."""
        rows = await self._session.fetch(FIND, account_id, profile_id)
        return profile_of(rows[0]).content if rows else None
