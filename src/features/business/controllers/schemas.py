"""Response schemas of business profiles."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from features.business.controllers.request_schemas import PROFILE_BODY_EXAMPLE
from features.business.domain.completeness import completeness
from features.business.domain.profile import BusinessProfile
from features.business.domain.prompt import measured_prefix


class IdealCustomerResponse(msgspec.Struct, frozen=True, kw_only=True):
    followers_min: int | None
    followers_max: int | None
    engagement_rate_min: float | None
    niches: list[str]
    content_themes: list[str]
    geographies: list[str]
    exclusions: list[str]


class CompletenessResponse(msgspec.Struct, frozen=True, kw_only=True):
    percent: int
    missing: list[str]
    is_complete: bool


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
    ideal_customer: IdealCustomerResponse
    completeness: CompletenessResponse
    created_by: str
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class ProfilesResponse(msgspec.Struct, frozen=True, kw_only=True):
    items: list[ProfileResponse]
    next_cursor: str | None


class ContextResponse(msgspec.Struct, frozen=True, kw_only=True):
    profile_id: UUID
    version: int
    prompt_prefix: str
    sha256: str
    characters: int
    tokens_estimate: int


def profile_out(profile: BusinessProfile) -> ProfileResponse:
    flat = {
        **msgspec.structs.asdict(profile),
        **msgspec.structs.asdict(profile.content),
        "completeness": completeness(profile.content),
    }
    return msgspec.convert(flat, ProfileResponse, from_attributes=True)


def context_out(profile: BusinessProfile) -> ContextResponse:
    prefix = measured_prefix(profile.content)
    return ContextResponse(
        profile_id=profile.id,
        version=profile.version,
        prompt_prefix=prefix.text,
        sha256=prefix.sha256,
        characters=prefix.characters,
        tokens_estimate=prefix.tokens_estimate,
    )


PROFILE_EXAMPLE: dict[str, Any] = {
    "id": "0f8f6a3e-7c1b-4b8e-9d55-2a7d3c1e9b10",
    "account_id": "7d0c1f6e-3a55-4f0e-9c57-0d3f4b9a2f11",
    "version": 3,
    **PROFILE_BODY_EXAMPLE,
    "completeness": {"percent": 100, "missing": [], "is_complete": True},
    "created_by": "user:4c1d8f0a-52b7-4e0e-8a0f-6b1f2c3d4e5f",
    "created_at": "2026-11-01T09:30:00Z",
    "updated_at": "2026-11-02T16:05:00Z",
    "deleted_at": None,
}
CONTEXT_EXAMPLE = {
    "profile_id": PROFILE_EXAMPLE["id"],
    "version": 3,
    "prompt_prefix": "The business_profile below was written by ...",
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "characters": 1_204,
    "tokens_estimate": 302,
}
