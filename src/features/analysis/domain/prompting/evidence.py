"""Posts cited as evidence of an analysis."""

from collections.abc import Iterator, Mapping
from typing import cast

import msgspec

from features.analysis.domain.analysis import CAPTION_LENGTH_MAX, EvidencePost, ModelOutputs
from features.analysis.domain.profile.profile import Profile
from features.analysis.domain.scoring.scoring import Score, plain_label
from shared.text import plain


def evidence_of(
    profile: Profile, post_ids: Mapping[str, str], answers: ModelOutputs, score: Score
) -> tuple[EvidencePost, ...]:
    """In the profile's order, each once. ``post_ids`` maps labels to ids; unknown labels are ignored."""
    named = {post_ids[label] for label in map(plain_label, _labels(answers)) if label in post_ids}
    named.update(post_id for component in score.components for post_id in component.evidence_post_ids)
    labels = {post_id: label for label, post_id in post_ids.items()}
    return tuple(
        EvidencePost(
            id=post.id,
            label=labels[post.id],
            url=post.url,
            caption=plain(post.caption)[:CAPTION_LENGTH_MAX],
            posted_at=post.posted_at,
        )
        for post in {post.id: post for post in profile.posts}.values()
        if post.id in named
    )


def _labels(value: object) -> Iterator[str]:
    match value:
        case tuple():
            for item in cast("tuple[object, ...]", value):
                yield from _labels(item)
        case msgspec.Struct():
            for name in value.__struct_fields__:
                found = getattr(value, name)
                yield from found if name == "evidence" else _labels(found)
        case _:
            return
