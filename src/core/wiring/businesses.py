"""Adapter from the business slice to the analysis slice's ``Businesses`` port."""

from dataclasses import dataclass

import msgspec

from features.analysis.application.ports import Businesses
from features.analysis.domain.scoring.ideal_customer import Business, IdealCustomer
from features.business.domain.profile import ProfileId
from features.business.domain.prompt import prompt_prefix
from infrastructure.database.business.profile_lookup import PostgresBusinessLookup
from shared.ids import AccountId, BusinessProfileId


@dataclass(frozen=True, slots=True)
class DescribedBusinesses(Businesses):
    profiles: PostgresBusinessLookup

    async def find(self, account_id: AccountId, business_profile_id: BusinessProfileId) -> Business | None:
        content = await self.profiles.content(account_id, ProfileId(business_profile_id))
        if content is None:
            return None
        # Both structs have the same fields with the same meaning.
        customer = IdealCustomer(**msgspec.structs.asdict(content.ideal_customer))
        return Business(prompt_prefix=prompt_prefix(content), ideal_customer=customer)
