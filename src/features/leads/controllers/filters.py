"""Query parameters that filter leads."""

from typing import Annotated, cast, get_args
from uuid import UUID

from litestar.di import NamedDependency, Provide
from litestar.params import FromQuery, QueryParameter

from features.leads.application.ports import LeadFilter
from features.leads.domain.leads import SORTS
from shared.http.parameters import cursor_parameter
from shared.ids import AnalysisType, BusinessProfileId, Tier
from shared.pagination import sorted_pattern

WORDS_LENGTH_MAX = 100
NICHE_LENGTH_MAX = 500
WITHOUT_NUL = r"^[^\x00]*$"  # PostgreSQL rejects NUL
_ONE_TIER = f"({'|'.join(get_args(Tier))})"


def _score(description: str) -> QueryParameter:
    # Litestar omits a minimum of 0 from the OpenAPI document.
    return QueryParameter(ge=0, le=100, description=description, schema_extra={"minimum": 0})


Tiers = Annotated[
    str | None,
    QueryParameter(
        pattern=f"^{_ONE_TIER}(,{_ONE_TIER}){{0,3}}$", description="One or several: `hot` or `hot,warm`."
    ),
]
ScoreMin = Annotated[int | None, _score("Minimum score.")]
ScoreMax = Annotated[int | None, _score("Maximum score.")]
Niche = Annotated[
    str | None,
    QueryParameter(
        min_length=1,
        max_length=NICHE_LENGTH_MAX,
        pattern=WITHOUT_NUL,
        description="Exact niche; case-insensitive.",
    ),
]
Words = Annotated[
    str | None,
    QueryParameter(
        min_length=1,
        max_length=WORDS_LENGTH_MAX,
        pattern=WITHOUT_NUL,
        description="Text in the username, full name or biography; case-insensitive.",
    ),
]
BusinessFilter = Annotated[UUID | None, QueryParameter(description="Only leads of this business profile.")]
TypeFilter = Annotated[AnalysisType | None, QueryParameter(description="Type of the latest analysis.")]
SortedCursor = Annotated[str | None, cursor_parameter(sorted_pattern(SORTS))]


def lead_filter(
    business_profile_id: BusinessFilter = None,
    tier: Tiers = None,
    score_min: ScoreMin = None,
    score_max: ScoreMax = None,
    niche: Niche = None,
    q: Words = None,
    analysis_type: TypeFilter = None,
    deleted: FromQuery[bool] = False,  # noqa: FBT002  query parameters are named
) -> LeadFilter:
    return LeadFilter(
        business_profile_id=business_profile_id and BusinessProfileId(business_profile_id),
        tiers=cast("tuple[Tier, ...]", tuple(tier.split(","))) if tier else (),
        score_min=score_min,
        score_max=score_max,
        niche=niche,
        words=q,
        analysis_type=analysis_type,
        is_deleted=deleted,
    )


FILTERS = {"filters": Provide(lead_filter, sync_to_thread=False)}
"""Dependency of handlers with the parameter ``filters: Filters``."""
Filters = NamedDependency[LeadFilter]
