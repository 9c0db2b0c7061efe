"""Excerpt of a profile for a prompt: the most relevant posts within a byte budget, as untrusted text."""

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from features.analysis.domain.profile.counts import known, posted_at
from features.analysis.domain.profile.facts import Count, Facts
from features.analysis.domain.profile.profile import Post, Profile
from features.analysis.domain.scoring.icp_match import IcpMatch
from shared.ids import AnalysisType
from shared.text import cut, escaped, plain


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    posts_max: int
    caption_bytes_max: int
    bytes_max: int  # of the whole excerpt; about four bytes are one token


# A light analysis completes within seconds on a small model; an xray sends nearly everything.
BUDGETS: dict[AnalysisType, Budget] = {
    "light": Budget(posts_max=12, caption_bytes_max=400, bytes_max=8_000),
    "deep": Budget(posts_max=24, caption_bytes_max=800, bytes_max=20_000),
    "xray": Budget(posts_max=36, caption_bytes_max=1_000, bytes_max=32_000),
}
USERNAME_BYTES_MAX = 60
NAME_BYTES_MAX = 120
BIOGRAPHY_BYTES_MAX = 800
LINK_BYTES_MAX = 150
LINKS_MAX = 3
COUNTS_BYTES_MAX = 600
PLACES_UP = 6  # positions that a post gains over newer ones when it contains a sought term


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Contains no angle bracket and no line that begins with scraped text. ``post_ids`` maps the labels of
    the shown posts to their ids; labels are ours, because a post's id is untrusted text too.
    """

    text: str
    post_ids: dict[str, str]


def excerpt_of(analysis_type: AnalysisType, profile: Profile, facts: Facts, fit: IcpMatch) -> Excerpt:
    budget = BUDGETS[analysis_type]
    header = list(_header(profile, facts))
    shown: dict[int, str] = {}
    bytes_left = budget.bytes_max - sum(map(_size, header))
    for position in _most_telling(profile.posts, fit):
        text = _shown_post(profile.posts[position], position, budget.caption_bytes_max, facts.at)
        size = _size(text)
        if size <= bytes_left and len(shown) < budget.posts_max:
            shown[position] = text
            bytes_left -= size
    return Excerpt(
        text="\n".join([*header, *(shown[position] for position in sorted(shown))]),
        post_ids={_label(position): profile.posts[position].id for position in sorted(shown)},
    )


def _most_telling(posts: tuple[Post, ...], fit: IcpMatch) -> list[int]:
    """Newest first, but a matching post precedes a slightly newer one."""
    return sorted(
        range(len(posts)), key=lambda position: position - PLACES_UP * (posts[position].id in fit.post_ids)
    )


def _header(profile: Profile, facts: Facts) -> Iterator[str]:
    yield from _line("username", profile.username, USERNAME_BYTES_MAX)
    yield from _line("full_name", profile.full_name, NAME_BYTES_MAX)
    yield from _line("category", profile.category, NAME_BYTES_MAX)
    yield from _line("biography", profile.biography, BIOGRAPHY_BYTES_MAX)
    for link in profile.external_urls[:LINKS_MAX]:
        yield from _line("link", link, LINK_BYTES_MAX)
    yield from _line("hashtags", _listed("#", facts.hashtags), COUNTS_BYTES_MAX)
    yield from _line("mentions", _listed("@", facts.mentions), COUNTS_BYTES_MAX)


def _line(name: str, text: str, bytes_max: int) -> Iterator[str]:
    quoted = cut(escaped(plain(text)), bytes_max)
    if quoted:
        yield f"{name}: {quoted}"


def _listed(mark: str, counts: Iterable[Count]) -> str:
    return ", ".join(f"{mark}{count.text} ({count.posts_count})" for count in counts)


def _size(text: str) -> int:
    return len(text.encode()) + 1  # the line break


def _label(position: int) -> str:
    return f"p{position + 1}"


def _shown_post(post: Post, position: int, caption_bytes_max: int, at: datetime) -> str:
    moment = posted_at(post, at)
    parts = [
        post.kind,
        "date unknown" if moment is None else f"{(at - moment).days} days old",
        _counted("likes", post.likes_count),
        _counted("comments", post.comments_count),
    ]
    if post.kind == "video":
        parts.append(_counted("views", post.video_views_count))
    caption = _line("caption", post.caption, caption_bytes_max)
    return "\n".join([f"[{_label(position)}] {', '.join(parts)}", *caption])


def _counted(name: str, count: int | None) -> str:
    number = known(count)
    return f"{name} unknown" if number is None else f"{number} {name}"
