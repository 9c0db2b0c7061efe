"""Business profile: the owner's description of the business and its ideal customer."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NewType
from uuid import UUID

import msgspec

from features.business.domain.errors import BusinessProfilesLimit, ProfileChanged
from features.business.domain.ideal_customer import IdealCustomer
from features.business.domain.texts import language, line, prose, website
from shared.ids import AccountId

ProfileId = NewType("ProfileId", UUID)

RESTORABLE_FOR = timedelta(days=30)
LINE_LENGTHS_MAX = {"name": 200, "industry": 200, "tone": 200}
PROSE_LENGTHS_MAX = {
    "summary": 500,
    "offering": 4_000,
    "target_audience": 4_000,
    "value_proposition": 2_000,
    "outreach_goal": 500,
}


class ProfileContent(msgspec.Struct, frozen=True, kw_only=True):
    """Fields that the customer writes."""

    name: str
    website: str | None = None
    industry: str | None = None
    summary: str | None = None
    offering: str | None = None
    target_audience: str | None = None
    value_proposition: str | None = None
    tone: str | None = None
    outreach_goal: str | None = None
    language: str | None = None
    ideal_customer: IdealCustomer = IdealCustomer()

    def checked(self) -> "ProfileContent":
        """Returns a normalized copy. Raises ProfileInvalid."""
        lines = {name: (line, length) for name, length in LINE_LENGTHS_MAX.items()}
        texts = {name: (prose, length) for name, length in PROSE_LENGTHS_MAX.items()}
        tidy: dict[str, str] = {}
        for name, (kind, length_max) in {**lines, **texts}.items():
            text = getattr(self, name)
            if text is not None:
                tidy[name] = kind(name, text, length_max)
        return msgspec.structs.replace(
            self,
            **tidy,
            website=None if self.website is None else website("website", self.website),
            language=None if self.language is None else language("language", self.language),
            ideal_customer=self.ideal_customer.checked(),
        )

    def changed(self, fields: Mapping[str, object], ideal_customer: Mapping[str, object]) -> "ProfileContent":
        """Returns a copy with only these fields replaced, nested ones too. Raises ProfileInvalid."""
        merged = msgspec.structs.replace(self.ideal_customer, **ideal_customer)
        return msgspec.structs.replace(self, **fields, ideal_customer=merged).checked()


class BusinessProfile(msgspec.Struct, frozen=True, kw_only=True):
    id: ProfileId
    account_id: AccountId
    version: int
    content: ProfileContent
    created_by: str
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None

    def check_version(self, expected: frozenset[int] | None) -> None:
        """Raises ProfileChanged if the caller has not seen the current version. None accepts any version."""
        if expected is not None and self.version not in expected:
            raise ProfileChanged(version=self.version)


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """Number of profiles and the plan's limit. ``profiles_max`` None means unlimited."""

    plan: str
    profiles_max: int | None
    profiles_count: int

    def check_room(self) -> None:
        if self.profiles_max is not None and self.profiles_count >= self.profiles_max:
            raise BusinessProfilesLimit(limit=self.profiles_max, plan=self.plan)
