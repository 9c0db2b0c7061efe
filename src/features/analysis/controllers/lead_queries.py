"""Query parameters that filter leads."""

from typing import Annotated, cast, get_args
from uuid import UUID

from litestar.di import NamedDependency, Provide
from litestar.params import FromQuery, QueryParameter

from features.analysis.application.ports import LeadFilter
from features.analysis.domain.leads import SORTS, BusinessProfileId
from features.analysis.domain.profile.profile import AnalysisType
from features.analysis.domain.scoring.scoring import Tier
from shared.http.parameters import cursor_parameter
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
ScoreMin = Annotated[int | None, _score("The least score.")]
ScoreMax = Annotated[int | None, _score("The greatest score.")]
Niche = Annotated[
    str | None,
    QueryParameter(
        min_length=1,
        max_length=NICHE_LENGTH_MAX,
        pattern=WITHOUT_NUL,
        description="The whole niche, in capitals or not.",
    ),
]
Words = Annotated[
    str | None,
    QueryParameter(
        min_length=1,
        max_length=WORDS_LENGTH_MAX,
        pattern=WITHOUT_NUL,
        description="What stands somewhere in username, full name or biography, in capitals or not.",
    ),
]
OfBusiness = Annotated[UUID | None, QueryParameter(description="Of this business profile alone.")]
OfType = Annotated[AnalysisType | None, QueryParameter(description="The last analysis's type.")]
SortedCursor = Annotated[str | None, cursor_parameter(sorted_pattern(SORTS))]


def lead_filter(
    business_profile_id: OfBusiness = None,
    tier: Tiers = None,
    score_min: ScoreMin = None,
    score_max: ScoreMax = None,
    niche: Niche = None,
    q: Words = None,
    analysis_type: OfType = None,
    deleted: FromQuery[bool] = False,  # noqa: FBT002  a query has names
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


FILTERED = {"only": Provide(lead_filter, sync_to_thread=False)}
"""A handler that asks for ``only: Only`` takes the filters' parameters in its query."""
Only = NamedDependency[LeadFilter]
