"""Comparison of two analyses of the same lead."""

from datetime import datetime

import msgspec

from shared.ids import AnalysisType, Tier


class HashtagCount(msgspec.Struct, frozen=True, kw_only=True):
    text: str


class SnapshotEngagement(msgspec.Struct, frozen=True, kw_only=True):
    rate_median: float | None


class SnapshotFacts(msgspec.Struct, frozen=True, kw_only=True):
    followers: int
    engagement: SnapshotEngagement
    hashtags: tuple[HashtagCount, ...]


class ScoreComponent(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    points: int
    points_max: int


class SnapshotScore(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    tier: Tier
    components: tuple[ScoreComponent, ...]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The compared fields of a stored analysis; decoding ignores its other fields."""

    analysis_type: AnalysisType
    analysed_at: datetime
    facts: SnapshotFacts
    score: SnapshotScore


class ComponentChange(msgspec.Struct, frozen=True, kw_only=True):
    """In percent of the component's maximum, because analysis types weight components differently."""

    name: str
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


def compare(before: Snapshot, after: Snapshot) -> Comparison:
    followers_before, followers_after = before.facts.followers, after.facts.followers
    delta = followers_after - followers_before
    tags_before = [hashtag.text for hashtag in before.facts.hashtags]
    tags_after = [hashtag.text for hashtag in after.facts.hashtags]
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


def _rate_delta(before: SnapshotFacts, after: SnapshotFacts) -> float | None:
    earlier, later = before.engagement.rate_median, after.engagement.rate_median
    return None if earlier is None or later is None else round(later - earlier, 2)


def _component_changes(before: SnapshotScore, after: SnapshotScore) -> tuple[ComponentChange, ...]:
    earlier, later = _percents(before), _percents(after)
    return tuple(
        ComponentChange(name=name, before=earlier[name], after=percent, delta=percent - earlier[name])
        for name, percent in later.items()
        if name in earlier
    )


def _percents(score: SnapshotScore) -> dict[str, int]:
    return {part.name: 100 * part.points // part.points_max for part in score.components}
