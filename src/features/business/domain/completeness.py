"""Share of a business profile that is filled in, and its missing fields."""

from operator import attrgetter

import msgspec

from features.business.domain.profile import ProfileContent

# Percent per field, by its effect on the quality of analyses. Exclusions are optional, so they have none.
WEIGHTS = {
    "name": 10,
    "website": 5,
    "industry": 5,
    "summary": 10,
    "offering": 15,
    "target_audience": 10,
    "value_proposition": 10,
    "tone": 5,
    "outreach_goal": 5,
    "language": 5,
    "ideal_customer.followers_min": 3,
    "ideal_customer.followers_max": 3,
    "ideal_customer.engagement_rate_min": 4,
    "ideal_customer.niches": 5,
    "ideal_customer.content_themes": 3,
    "ideal_customer.geographies": 2,
}


class Completeness(msgspec.Struct, frozen=True, kw_only=True):
    percent: int
    missing: list[str]
    is_complete: bool


def completeness(content: ProfileContent) -> Completeness:
    # A minimum of 0 is a value; None and an empty list are missing.
    missing = [field for field in WEIGHTS if attrgetter(field)(content) in (None, ())]
    return Completeness(
        percent=100 - sum(WEIGHTS[field] for field in missing),
        missing=missing,
        is_complete=not missing,
    )
