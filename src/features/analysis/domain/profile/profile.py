"""Public profile as scraped, without any judgement."""

import re
from datetime import datetime
from typing import Literal

import msgspec

from features.analysis.domain.errors import UsernameInvalid
from shared.ids import AnalysisType, Platform

Outcome = Literal["ok", "private", "not_found", "restricted"]

POSTS_NEEDED: dict[AnalysisType, int] = {"light": 12, "deep": 50, "xray": 50}

_USERNAME = re.compile(r"(?!.*\.\.)(?!\.)[a-z0-9._]{1,30}(?<!\.)")
_ADDRESS = re.compile(
    r"(?:https?://)?(?:(?:www\.|m\.)?instagram\.com|instagr\.am)"
    r"/@?([^/?#]+)(?:/(?:reels|tagged|channel|feed))?/?(?:[?#].*)?",
    re.IGNORECASE | re.DOTALL,
)
# These paths lead to other pages, so no profile can have such a name.
_RESERVED = frozenset(
    (
        "_n",
        "_u",
        "about",
        "accounts",
        "api",
        "challenge",
        "direct",
        "directory",
        "emails",
        "explore",
        "graphql",
        "legal",
        "nametag",
        "oauth",
        "p",
        "reel",
        "reels",
        "stories",
        "tv",
        "web",
    )
)


class Post(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    kind: Literal["image", "video", "carousel"]
    url: str = ""
    caption: str = ""
    hashtags: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    likes_count: int | None = None  # None when its owner hides it
    comments_count: int | None = None
    video_views_count: int | None = None
    posted_at: datetime | None = None


class Profile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Posts are newest first. Counts are the platform's totals; ``posts`` are only the scraped ones."""

    platform: Platform = "instagram"
    username: str
    id: str = ""
    full_name: str = ""
    biography: str = ""
    external_urls: tuple[str, ...] = ()
    followers_count: int = 0
    following_count: int = 0
    posts_count: int = 0
    highlights_count: int = 0
    is_private: bool = False
    is_verified: bool = False
    is_business: bool = False
    category: str = ""
    picture_url: str = ""
    related_usernames: tuple[str, ...] = ()
    posts: tuple[Post, ...] = ()


class Scrape(msgspec.Struct, frozen=True, kw_only=True):
    """Result of fetching a profile. A private profile still has its name and counts; a missing or restricted
    one has no profile data.
    """

    outcome: Outcome
    profile: Profile | None
    posts_asked: int
    scraped_at: datetime
    provider: str
    is_simulated: bool


def username_of(text: str) -> str:
    """Accepts ``@name``, ``name`` or a profile's URL. Raises UsernameInvalid."""
    stripped = text.strip()
    address = _ADDRESS.fullmatch(stripped)
    name = (address[1] if address else stripped.removeprefix("@")).lower()
    # Rejects lookalike letters of other scripts; some become ASCII in lower case.
    if not stripped.isascii() or not _USERNAME.fullmatch(name) or name in _RESERVED:
        raise UsernameInvalid(username=text[:100])
    return name
