"""Request schemas. A schema bounds the body; the domain's rules explain why a text is rejected."""

from typing import Annotated, Any

import msgspec
from litestar.openapi.spec import Example
from litestar.params import BodyKwarg
from msgspec import UNSET, UnsetType

from features.business.domain.ideal_customer import ENGAGEMENT_RATE_MAX, FOLLOWERS_MAX, IdealCustomer
from features.business.domain.profile import LINE_LENGTHS_MAX, PROSE_LENGTHS_MAX, ProfileContent
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


def _text(length_max: int, pattern: str, description: str | None = None) -> msgspec.Meta:
    """The pattern is only for the OpenAPI schema: the domain's error is clearer than the decoder's."""
    return msgspec.Meta(
        min_length=1,
        max_length=length_max,
        description=description,
        extra_json_schema={"description": description, "extra": {"pattern": pattern}},
    )


def _number(greatest: int, description: str) -> msgspec.Meta:
    return msgspec.Meta(ge=0, le=greatest, description=description)


Name = Annotated[str, _text(LINE_LENGTHS_MAX["name"], LINE_PATTERN)]
Website = Annotated[
    str, _text(WEBSITE_LENGTH_MAX, WEBSITE_PATTERN, "An http or https address without user or password.")
]
Industry = Annotated[str, _text(LINE_LENGTHS_MAX["industry"], LINE_PATTERN)]
Summary = Annotated[str, _text(PROSE_LENGTHS_MAX["summary"], PROSE_PATTERN, "The business in a sentence.")]
Offering = Annotated[str, _text(PROSE_LENGTHS_MAX["offering"], PROSE_PATTERN, "What it sells.")]
TargetAudience = Annotated[str, _text(PROSE_LENGTHS_MAX["target_audience"], PROSE_PATTERN, "Who it is for.")]
ValueProposition = Annotated[
    str, _text(PROSE_LENGTHS_MAX["value_proposition"], PROSE_PATTERN, "Why they should choose it.")
]
Tone = Annotated[str, _text(LINE_LENGTHS_MAX["tone"], LINE_PATTERN, "How it speaks.")]
OutreachGoal = Annotated[
    str, _text(PROSE_LENGTHS_MAX["outreach_goal"], PROSE_PATTERN, "What writing to somebody is to achieve.")
]
Language = Annotated[
    str, _text(LANGUAGE_LENGTH_MAX, LANGUAGE_PATTERN, "A language tag: `en`, `de-CH`, `zh-Hant`.")
]
Followers = Annotated[int, _number(FOLLOWERS_MAX, "`followers_min` may not be above `followers_max`.")]
EngagementRate = Annotated[
    float, _number(ENGAGEMENT_RATE_MAX, "A percentage; two decimals are kept: 2.5 is 2.5 %.")
]
Item = Annotated[str, msgspec.Meta(min_length=1, max_length=ITEM_LENGTH_MAX)]
ITEM_SCHEMA = {"type": "string", "minLength": 1, "maxLength": ITEM_LENGTH_MAX, "pattern": LINE_PATTERN}
ITEMS_TEXT = "Kept once each, whatever their case."
Items = Annotated[
    tuple[Item, ...],
    msgspec.Meta(
        max_length=ITEMS_MAX,
        description=ITEMS_TEXT,
        # Litestar does not document constraints on list items, so they are repeated here.
        extra_json_schema={"description": ITEMS_TEXT, "extra": {"items": ITEM_SCHEMA}},
    ),
]


class RequestBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


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
        fields = _sent(self)
        fields["ideal_customer"] = IdealCustomer(**_sent(self.ideal_customer))
        return ProfileContent(**fields)


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
    def fields(self) -> dict[str, Any]:
        return {name: value for name, value in _sent(self).items() if name != "ideal_customer"}

    @property
    def ideal_customer_fields(self) -> dict[str, Any]:
        return {} if isinstance(self.ideal_customer, UnsetType) else _sent(self.ideal_customer)


def _sent(body: RequestBody) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(body).items() if value is not UNSET}


PROFILE_BODY_EXAMPLE: dict[str, Any] = {
    "name": "Alpine Coffee",
    "website": "https://alpine-coffee.example",
    "industry": "Food and drink",
    "summary": "Small-batch coffee from the Alps, by subscription.",
    "offering": "Three roasts a month, from 19 euros.",
    "target_audience": "People who brew at home and care where beans come from.",
    "value_proposition": "Roasted on Monday, at the door on Wednesday.",
    "tone": "Warm, plain, never pushy",
    "outreach_goal": "Win creators for a tasting box.",
    "language": "en",
    "ideal_customer": {
        "followers_min": 5_000,
        "followers_max": 250_000,
        "engagement_rate_min": 2.5,
        "niches": ["coffee", "slow living"],
        "content_themes": ["brewing", "mornings"],
        "geographies": ["Austria", "Switzerland"],
        "exclusions": ["energy drinks"],
    },
}
CHANGES_EXAMPLE = {"tone": "Dry, friendly", "ideal_customer": {"followers_min": 10_000}}

ProfileBody = Annotated[ProfileRequest, BodyKwarg(examples=[Example(value=PROFILE_BODY_EXAMPLE)])]
ProfileChangesBody = Annotated[ProfilePatch, BodyKwarg(examples=[Example(value=CHANGES_EXAMPLE)])]
