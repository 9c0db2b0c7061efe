"""Request and response schemas of business profiles.

A schema bounds the body; the domain's rules explain why a text is rejected.
"""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from features.business.domain.completeness import Completeness, completeness
from features.business.domain.ideal_customer import ENGAGEMENT_RATE_MAX, FOLLOWERS_MAX, IdealCustomer
from features.business.domain.profile import (
    LINE_LENGTHS_MAX,
    PROSE_LENGTHS_MAX,
    BusinessProfile,
    ProfileContent,
)
from features.business.domain.prompt import measured_prefix
from features.business.domain.texts import (
    ITEM_LENGTH_MAX,
    ITEMS_MAX,
    LANGUAGE_LENGTH_MAX,
    LANGUAGE_PATTERN,
    LINE_PATTERN,
    PROSE_PATTERN,
    WEBSITE_LENGTH_MAX,
    WEBSITE_PATTERN,
)
from shared.http.parameters import RequestBody, text_field
from shared.http.responses import struct_from


def _line(field: str, description: str | None = None) -> msgspec.Meta:
    return text_field(LINE_LENGTHS_MAX[field], LINE_PATTERN, description)


def _prose(field: str, description: str) -> msgspec.Meta:
    return text_field(PROSE_LENGTHS_MAX[field], PROSE_PATTERN, description)


Name = Annotated[str, _line("name")]
Website = Annotated[
    str, text_field(WEBSITE_LENGTH_MAX, WEBSITE_PATTERN, "An http or https URL without user or password.")
]
Industry = Annotated[str, _line("industry")]
Summary = Annotated[str, _prose("summary", "The business in one sentence.")]
Offering = Annotated[str, _prose("offering", "The products or services it sells.")]
TargetAudience = Annotated[str, _prose("target_audience", "The people it sells to.")]
ValueProposition = Annotated[str, _prose("value_proposition", "The reason to choose it.")]
Tone = Annotated[str, _line("tone", "The tone of its messages.")]
OutreachGoal = Annotated[str, _prose("outreach_goal", "The goal of an outreach message.")]
Language = Annotated[
    str, text_field(LANGUAGE_LENGTH_MAX, LANGUAGE_PATTERN, "A language tag: `en`, `de-CH`, `zh-Hant`.")
]
Followers = Annotated[
    int, msgspec.Meta(ge=0, le=FOLLOWERS_MAX, description="`followers_min` may not exceed `followers_max`.")
]
EngagementRate = Annotated[
    float, msgspec.Meta(ge=0, le=ENGAGEMENT_RATE_MAX, description="In percent, with two decimals.")
]
Item = Annotated[str, msgspec.Meta(min_length=1, max_length=ITEM_LENGTH_MAX)]
ITEM_SCHEMA = {"type": "string", "minLength": 1, "maxLength": ITEM_LENGTH_MAX, "pattern": LINE_PATTERN}
ITEMS_TEXT = "Duplicates are removed, ignoring case."
Items = Annotated[
    tuple[Item, ...],
    msgspec.Meta(
        max_length=ITEMS_MAX,
        description=ITEMS_TEXT,
        # Litestar does not document constraints on list items, so they are repeated here.
        extra_json_schema={"description": ITEMS_TEXT, "extra": {"items": ITEM_SCHEMA}},
    ),
]


class IdealCustomerRequest(RequestBody, frozen=True, kw_only=True):
    followers_min: Followers | None = None
    followers_max: Followers | None = None
    engagement_rate_min: EngagementRate | None = None
    niches: Items = ()
    content_themes: Items = ()
    geographies: Items = ()
    exclusions: Items = ()


class ProfileRequest(RequestBody, frozen=True, kw_only=True):
    name: Name
    website: Website | None = None
    industry: Industry | None = None
    summary: Summary | None = None
    offering: Offering | None = None
    target_audience: TargetAudience | None = None
    value_proposition: ValueProposition | None = None
    tone: Tone | None = None
    outreach_goal: OutreachGoal | None = None
    language: Language | None = None
    ideal_customer: IdealCustomerRequest = msgspec.field(default_factory=IdealCustomerRequest)

    @property
    def content(self) -> ProfileContent:
        return struct_from(
            ProfileContent, self, ideal_customer=struct_from(IdealCustomer, self.ideal_customer)
        )


class IdealCustomerPatch(RequestBody, frozen=True, kw_only=True):
    followers_min: Followers | UnsetType | None = UNSET
    followers_max: Followers | UnsetType | None = UNSET
    engagement_rate_min: EngagementRate | UnsetType | None = UNSET
    niches: Items | UnsetType = UNSET
    content_themes: Items | UnsetType = UNSET
    geographies: Items | UnsetType = UNSET
    exclusions: Items | UnsetType = UNSET


class ProfilePatch(RequestBody, frozen=True, kw_only=True):
    name: Name | UnsetType = UNSET
    website: Website | UnsetType | None = UNSET
    industry: Industry | UnsetType | None = UNSET
    summary: Summary | UnsetType | None = UNSET
    offering: Offering | UnsetType | None = UNSET
    target_audience: TargetAudience | UnsetType | None = UNSET
    value_proposition: ValueProposition | UnsetType | None = UNSET
    tone: Tone | UnsetType | None = UNSET
    outreach_goal: OutreachGoal | UnsetType | None = UNSET
    language: Language | UnsetType | None = UNSET
    ideal_customer: IdealCustomerPatch | UnsetType = UNSET

    @property
    def profile_fields(self) -> dict[str, Any]:
        return {name: value for name, value in self.sent_fields.items() if name != "ideal_customer"}

    @property
    def ideal_customer_fields(self) -> dict[str, Any]:
        return {} if isinstance(self.ideal_customer, UnsetType) else self.ideal_customer.sent_fields


class ProfileResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    account_id: UUID
    version: int
    name: str
    website: str | None
    industry: str | None
    summary: str | None
    offering: str | None
    target_audience: str | None
    value_proposition: str | None
    tone: str | None
    outreach_goal: str | None
    language: str | None
    ideal_customer: IdealCustomer
    completeness: Completeness
    created_by: str
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class ContextResponse(msgspec.Struct, frozen=True, kw_only=True):
    profile_id: UUID
    version: int
    prompt_prefix: str
    sha256: str
    characters: int
    tokens_estimate: int


def profile_response(profile: BusinessProfile) -> ProfileResponse:
    content = msgspec.structs.asdict(profile.content)
    return struct_from(ProfileResponse, profile, **content, completeness=completeness(profile.content))


def context_response(profile: BusinessProfile) -> ContextResponse:
    prefix = measured_prefix(profile.content)
    return struct_from(
        ContextResponse, prefix, profile_id=profile.id, version=profile.version, prompt_prefix=prefix.text
    )
