"""Comparison of two analyses of the same lead."""

from datetime import datetime

import msgspec

from features.analysis.domain.profile.facts import Facts
from features.analysis.domain.profile.profile import AnalysisType
from features.analysis.domain.scoring.scoring import ComponentName, Score, Tier


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    analysis_type: AnalysisType
    analysed_at: datetime
    facts: Facts
    score: Score


class ComponentChange(msgspec.Struct, frozen=True, kw_only=True):
    """In percent of the component's maximum, because analysis types weight components differently."""

    name: ComponentName
    before: int
    after: int
    delta: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    days_between: int
    is_same_type: bool
    score_delta: int
    tier_before: Tier
    tier_after: Tier
    followers_delta: int
    followers_delta_percent: float | None  # None when there were no followers before
    engagement_rate_delta: float | None  # in percentage points; None when either rate is unknown
    components: tuple[ComponentChange, ...]  # components of both scores, in the order of the later one
    hashtags_new: tuple[str, ...]  # among the most used hashtags
    hashtags_lost: tuple[str, ...]


def compared(before: Snapshot, after: Snapshot) -> Comparison:
    followers_before, followers_after = before.facts.followers, after.facts.followers
    delta = followers_after - followers_before
    tags_before = [tally.text for tally in before.facts.hashtags]
    tags_after = [tally.text for tally in after.facts.hashtags]
    return Comparison(
        days_between=(after.analysed_at - before.analysed_at).days,
        is_same_type=before.analysis_type == after.analysis_type,
        score_delta=after.score.total - before.score.total,
        tier_before=before.score.tier,
        tier_after=after.score.tier,
        followers_delta=delta,
        followers_delta_percent=round(100 * delta / followers_before, 2) if followers_before else None,
        engagement_rate_delta=_rate_delta(before.facts, after.facts),
        components=_component_changes(before.score, after.score),
        hashtags_new=tuple(tag for tag in tags_after if tag not in tags_before),
        hashtags_lost=tuple(tag for tag in tags_before if tag not in tags_after),
    )


def _rate_delta(before: Facts, after: Facts) -> float | None:
    earlier, later = before.engagement.rate_median, after.engagement.rate_median
    return None if earlier is None or later is None else round(later - earlier, 2)


def _component_changes(before: Score, after: Score) -> tuple[ComponentChange, ...]:
    earlier, later = _percents(before), _percents(after)
    return tuple(
        ComponentChange(name=name, before=earlier[name], after=percent, delta=percent - earlier[name])
        for name, percent in later.items()
        if name in earlier
    )


def _percents(score: Score) -> dict[ComponentName, int]:
    return {one.name: 100 * one.points // one.points_max for one in score.components}
