"""Business profiles for runs, read as admin because the run's user may have left the account."""

from typing import LiteralString

import msgspec

from features.analysis.application.ports import Businesses
from features.analysis.domain.scoring.ideal_customer import Business, IdealCustomer
from features.business.domain.prompt import prompt_prefix
from infrastructure.database.business.profiles import profile_of
from infrastructure.database.clients import AdminClient
from shared.ids import AccountId, BusinessProfileId

FIND: LiteralString = """
select * from public.business_profiles where account_id = $1 and id = $2 and deleted_at is null
"""


class PostgresBusinesses(Businesses):
    def __init__(self, session: AdminClient) -> None:
        self._session = session

    async def find(self, account_id: AccountId, business_profile_id: BusinessProfileId) -> Business | None:
        rows = await self._session.fetch(FIND, account_id, business_profile_id)
        if not rows:
            return None
        content = profile_of(rows[0]).content
        # Both structs have the same fields with the same meaning.
        customer = IdealCustomer(**msgspec.structs.asdict(content.ideal_customer))
        return Business(prompt_prefix=prompt_prefix(content), ideal_customer=customer)
