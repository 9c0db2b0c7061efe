"""Terms of the ideal customer found in a profile, with their locations."""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from features.analysis.domain.profile.facts import TAG_LENGTH_MAX
from features.analysis.domain.profile.profile import Profile
from features.analysis.domain.scoring.ideal_customer import IdealCustomer
from shared.text import comparable

TermKind = Literal["niche", "content_theme", "geography", "exclusion"]
Field = Literal["full_name", "category", "biography", "caption", "hashtag"]

# Weight of each kind in the fit. The niche says more than the topics of posts, and the location is seldom
# written down.
WEIGHTS: dict[TermKind, int] = {"niche": 60, "content_theme": 25, "geography": 15}
# Share by the number of terms found of a kind: one term is a fit, three count as all, so that a long list
# of terms does not lower the share.
SHARES = (0.0, 0.6, 0.85, 1.0)
EXCLUSION_FACTOR = 0.5  # a term can appear in passing, so it lowers the share and does not refuse the profile
PLACES_MAX = 5
HASHTAGS_MAX = 30  # per post; the platform's limit
# A shorter word would match inside other words: tea in #team.
HASHTAG_PART_LENGTH_MIN = 5

# Scripts without spaces between words: Thai to Khmer, kana, Chinese.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)


class Location(msgspec.Struct, frozen=True, kw_only=True):
    field: Field
    post_id: str | None = None


class Match(msgspec.Struct, frozen=True, kw_only=True):
    kind: TermKind
    term: str  # as the business wrote it
    places: tuple[Location, ...]  # only the first few


class IcpMatch(msgspec.Struct, frozen=True, kw_only=True):
    share: float | None  # 0..1; None when the business names no terms
    matches: tuple[Match, ...]  # in the business's order
    exclusions: tuple[Match, ...]
    post_ids: frozenset[str]  # posts that contain a sought term


class _Text(msgspec.Struct, frozen=True):
    place: Location
    words: str  # with a space at both ends
    joined: str


def fit_of(profile: Profile, customer: IdealCustomer) -> IcpMatch:
    texts = tuple(_texts(profile))
    wanted: dict[TermKind, tuple[str, ...]] = {
        "niche": customer.niches,
        "content_theme": customer.content_themes,
        "geography": customer.geographies,
    }
    matches = [match for kind, terms in wanted.items() for match in _matches(kind, terms, texts)]
    exclusions = tuple(_matches("exclusion", customer.exclusions, texts))
    found = (place.post_id for match in matches for place in match.places)
    return IcpMatch(
        share=_share(wanted, matches, has_exclusions=bool(exclusions)),
        matches=tuple(map(_shortened, matches)),
        exclusions=tuple(map(_shortened, exclusions)),
        post_ids=frozenset(post_id for post_id in found if post_id is not None),
    )


def _share(
    wanted: dict[TermKind, tuple[str, ...]], matches: list[Match], *, has_exclusions: bool
) -> float | None:
    """Sum of weight x share of terms found / sum of weights, over the kinds that the business names."""
    named: dict[TermKind, tuple[str, ...]] = {kind: terms for kind, terms in wanted.items() if terms}
    if not named:
        return None
    points = 0.0
    for kind in named:
        found = sum(match.kind == kind for match in matches)
        points += WEIGHTS[kind] * SHARES[-1 if found == len(named[kind]) else min(found, len(SHARES) - 1)]
    share = points / sum(WEIGHTS[kind] for kind in named)
    return round(share * (EXCLUSION_FACTOR if has_exclusions else 1), 3)


def _texts(profile: Profile) -> Iterator[_Text]:
    yield _text(profile.full_name, Location(field="full_name"))
    yield _text(profile.category, Location(field="category"))
    yield _text(profile.biography, Location(field="biography"))
    for post in profile.posts:
        yield _text(post.caption, Location(field="caption", post_id=post.id))
        for hashtag in post.hashtags[:HASHTAGS_MAX]:
            yield _text(hashtag[:TAG_LENGTH_MAX], Location(field="hashtag", post_id=post.id))


def _text(text: str, place: Location) -> _Text:
    words = comparable(text)
    return _Text(place, f" {words} ", words.replace(" ", ""))


def _matches(kind: TermKind, terms: tuple[str, ...], texts: tuple[_Text, ...]) -> Iterator[Match]:
    # Most terms do not occur; one search through the joined text excludes them quickly.
    everything = "\n".join(text.joined for text in texts)
    for term in terms:
        words = comparable(term)
        joined = words.replace(" ", "")
        if joined and joined in everything:
            places = dict.fromkeys(text.place for text in texts if _is_in(words, joined, text))
            if places:
                yield Match(kind=kind, term=term, places=tuple(places))


def _shortened(match: Match) -> Match:
    return msgspec.structs.replace(match, places=match.places[:PLACES_MAX])


def _is_in(words: str, joined: str, text: _Text) -> bool:
    """As whole words; in a hashtag, at its start or end; in scripts without spaces, anywhere."""
    if f" {words} " in text.words:
        return True
    is_unspaced = bool(_UNSPACED.search(words))
    if text.place.field == "hashtag":
        is_part = is_unspaced or len(joined) >= HASHTAG_PART_LENGTH_MIN
        found = is_part and (text.joined.startswith(joined) or text.joined.endswith(joined))
        return found or text.joined == joined
    return is_unspaced and words in text.words
