"""Explainable score: points from computed facts and points from a model's judgement.

Each component earns a share of 0 to 1 of the points in the table. A model's score is weighted by its
confidence; the remainder uses the average share of the computed components. So a model with no confidence
does not change the score. All sums are computed here, once.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from features.analysis.domain.profile.facts import Facts
from features.analysis.domain.prompting.model_outputs import Judgement, Point, PsychographicOutput
from features.analysis.domain.scoring.formula import FormulaName, Share, shares_of
from features.analysis.domain.scoring.icp_match import IcpMatch
from shared.ids import AnalysisType, Tier

OpinionName = Literal["model_overall", "model_niche_fit", "model_engagement_quality", "model_receptiveness"]
ComponentName = FormulaName | OpinionName

# Points by analysis type, 100 in total. A model that saw more of the profile has more weight.
WEIGHTS: dict[AnalysisType, dict[ComponentName, int]] = {
    "light": {
        "engagement": 22,
        "niche_fit": 20,
        "activity": 8,
        "authenticity": 5,
        "authority": 5,
        "model_overall": 14,
        "model_niche_fit": 16,
        "model_engagement_quality": 10,
    },
    "deep": {
        "engagement": 18,
        "niche_fit": 16,
        "activity": 6,
        "authenticity": 5,
        "authority": 5,
        "model_overall": 18,
        "model_niche_fit": 20,
        "model_engagement_quality": 12,
    },
    "xray": {
        "engagement": 14,
        "niche_fit": 13,
        "activity": 5,
        "authenticity": 4,
        "authority": 4,
        "model_overall": 20,
        "model_niche_fit": 20,
        "model_engagement_quality": 10,
        "model_receptiveness": 10,
    },
}
TIERS: tuple[tuple[int, Tier], ...] = (
    (80, "hot"),
    (60, "warm"),
    (40, "cool"),
    (0, "cold"),
)  # minimum score of each tier (U-11)
UNSUPPORTED_PERCENT = 50  # of a model's confidence remains when it cites no post


class Component(msgspec.Struct, frozen=True, kw_only=True):
    name: ComponentName
    source: Literal["formula", "model"]
    points: int
    points_max: int
    input: str  # the numbers it is based on, for a reader
    evidence_post_ids: tuple[str, ...] = ()


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """``total`` is the sum of its components' points."""

    total: int
    tier: Tier
    niche_fit: int  # 0..100: share of the maximum of its components
    engagement: int
    confidence: int  # 0..100, of the model, after its evidence was checked
    evidence_dropped: int  # labels of posts that the model was not shown
    components: tuple[Component, ...]


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    name: OpinionName
    score: int
    confidence: int
    evidence_post_ids: tuple[str, ...]


def tier_of(total: int) -> Tier:
    return next(tier for least, tier in TIERS if total >= least)


def score_of(
    analysis_type: AnalysisType,
    facts: Facts,
    fit: IcpMatch,
    *,
    judgement: Judgement,
    psychographic: PsychographicOutput | None = None,
    post_ids: Mapping[str, str],
) -> Score:
    """``post_ids`` maps the labels shown to the model to ids. ``psychographic`` is set for an xray only."""
    weights = WEIGHTS[analysis_type]
    formula = [_formula_component(share, weights[share.name]) for share in shares_of(facts, fit)]
    opinions, dropped = _opinions(judgement, psychographic, post_ids)
    model = [_model_component(opinion, weights[opinion.name], formula) for opinion in opinions]
    components = (*formula, *model)
    assert {component.name for component in components} == weights.keys()
    total = sum(component.points for component in components)
    return Score(
        total=total,
        tier=tier_of(total),
        niche_fit=_percent_of(components, {"niche_fit", "model_niche_fit"}),
        engagement=_percent_of(components, {"engagement", "model_engagement_quality"}),
        confidence=opinions[0].confidence,
        evidence_dropped=dropped,
        components=components,
    )


def _formula_component(share: Share, points_max: int) -> Component:
    return Component(
        name=share.name,
        source="formula",
        points=math.floor(points_max * share.share + 0.5),
        points_max=points_max,
        input=share.input,
    )


def _model_component(opinion: Opinion, points_max: int, formula: list[Component]) -> Component:
    """points_max x (confidence x model's score + (1 - confidence) x formula's share), in whole numbers."""
    points, of = sum(one.points for one in formula), sum(one.points_max for one in formula)
    share = opinion.confidence * opinion.score * of + (100 - opinion.confidence) * 100 * points
    return Component(
        name=opinion.name,
        source="model",
        points=(2 * points_max * share + 10_000 * of) // (20_000 * of),
        points_max=points_max,
        input=f"{opinion.score} of 100, counted by a confidence of {opinion.confidence} %",
        evidence_post_ids=opinion.evidence_post_ids,
    )


def _opinions(
    judgement: Judgement, psychographic: PsychographicOutput | None, post_ids: Mapping[str, str]
) -> tuple[list[Opinion], int]:
    labels = [label for reason in judgement.reasons for label in reason.evidence]
    scores: dict[OpinionName, int] = {
        "model_overall": judgement.overall,
        "model_niche_fit": judgement.niche_fit,
        "model_engagement_quality": judgement.engagement_quality,
    }
    opinions, dropped = _supported(scores, judgement.confidence, labels, post_ids)
    if psychographic is None:
        return opinions, dropped
    labels = [label for point in _points(psychographic) for label in point.evidence]
    more, more_dropped = _supported(
        {"model_receptiveness": psychographic.receptiveness}, psychographic.confidence, labels, post_ids
    )
    return opinions + more, dropped + more_dropped


def _points(answer: PsychographicOutput) -> Iterable[Point]:
    return (*answer.core_values, *answer.motivations, *answer.frustrations, *answer.persuasion_angles)


def _supported(
    scores: dict[OpinionName, int], confidence: float, labels: list[str], post_ids: Mapping[str, str]
) -> tuple[list[Opinion], int]:
    """Confidence x the share of labels that exist; half of the confidence when there are no labels."""
    known = [post_ids[name] for name in map(plain_label, labels) if name in post_ids]
    support = 100 * len(known) // len(labels) if labels else UNSUPPORTED_PERCENT
    percent = math.floor(_clamped(100 * confidence)) * support // 100
    evidence = tuple(dict.fromkeys(known))
    opinions = [
        Opinion(name=name, score=math.floor(_clamped(score)), confidence=percent, evidence_post_ids=evidence)
        for name, score in scores.items()
    ]
    return opinions, len(labels) - len(known)


def plain_label(label: str) -> str:
    """Normalizes the spelling of a label in a model's output to ours."""
    return label.strip("[]# ").lower()


def _percent_of(components: tuple[Component, ...], names: set[ComponentName]) -> int:
    chosen = [component for component in components if component.name in names]
    return 100 * sum(one.points for one in chosen) // sum(one.points_max for one in chosen)


def _clamped(number: float) -> float:
    return min(100, max(0, number))
