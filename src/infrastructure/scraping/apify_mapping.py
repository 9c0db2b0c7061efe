"""Conversion of items of Apify's Instagram actors into profiles and posts."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

import msgspec

from features.analysis.domain.profile.profile import Outcome, Post, Profile
from infrastructure.scraping.errors import ScrapeError
from infrastructure.scraping.field_parsing import (
    FIRST_POST_AT,
    address,
    addresses,
    count,
    flag,
    instant,
    is_object,
    listed,
    names,
    required_count,
    text,
    usernames,
)

KINDS: dict[str, Literal["image", "video", "carousel"]] = {
    "image": "image",
    "video": "video",
    "sidecar": "carousel",
}
# Texts of the actors' error items.
NOT_FOUND = re.compile(r"\bnot found\b|\bdoes(n't| not) exist\b")
RESTRICTED = re.compile(r"\brestrict(ed|ion)?\b|\b(login|log in|sign in|age|country|region)\b")


class MappedProfile(msgspec.Struct, frozen=True):
    outcome: Outcome
    profile: Profile | None = None


def read_profile(items: list[Any], username: str, *, now: datetime) -> MappedProfile:
    """Reads the items of the profile actor. Raises ScrapeError when they are not usable."""
    if not items:
        return MappedProfile("not_found")
    item = next((item for item in items if _is_of(item, username)), None)
    if item is None:
        item = next((item for item in items if is_object(item) and item.get("error")), None)
        if item is None or text(item.get("username")):
            raise ScrapeError("malformed_response", detail="another profile, or none")
    if item.get("error"):
        return MappedProfile(_outcome_of(item))
    if flag(item.get("isRestrictedProfile")):
        return MappedProfile("restricted")
    profile = _profile(item, now=now)
    if profile.is_private:
        return MappedProfile("private", msgspec.structs.replace(profile, posts=()))
    return MappedProfile("ok", profile)


def read_posts(items: list[Any], *, now: datetime) -> tuple[Post, ...]:
    """Reads the items of the posts actor, without error items. The owner is not checked, because joint posts
    belong to several profiles.
    """
    return newest_first(_post(item, now=now) for item in items if is_object(item) and not item.get("error"))


def newest_first(posts: Iterable[Post | None]) -> tuple[Post, ...]:
    """Unique posts by date: the platform lists pinned posts first, regardless of their age."""
    unique = {post.id: post for post in posts if post is not None}
    return tuple(sorted(unique.values(), key=lambda post: post.posted_at or FIRST_POST_AT, reverse=True))


def _is_of(item: object, username: str) -> bool:
    return is_object(item) and text(item.get("username")).lower() == username.lower()


def _outcome_of(item: dict[str, Any]) -> Outcome:
    error = text(item.get("error"), 100).lower()
    message = f"{error} {text(item.get('errorDescription'), 500).lower()}".replace("_", " ")
    if NOT_FOUND.search(message):
        return "not_found"
    if error in ("private", "private_account"):
        return "private"
    # The actor reached the page and saw nothing, while a private profile would show its name. With messages
    # of failed requests the actor did not reach the page.
    is_wall = error == "no_items" or RESTRICTED.search(message)
    if is_wall and not listed(item.get("requestErrorMessages")):
        return "restricted"
    raise ScrapeError("unavailable", detail="the actor failed")


def _profile(item: dict[str, Any], *, now: datetime) -> Profile:
    links = (link.get("url") if is_object(link) else link for link in listed(item.get("externalUrls")))
    related = (one.get("username") if is_object(one) else one for one in listed(item.get("relatedProfiles")))
    posts = (_post(post, now=now) for post in listed(item.get("latestPosts")) if is_object(post))
    return Profile(
        username=text(item["username"]).lower(),
        id=text(item.get("id"), 40),
        full_name=text(item.get("fullName"), 200),
        biography=text(item.get("biography")),
        external_urls=addresses((item.get("externalUrl"), *links)),
        followers_count=required_count(item.get("followersCount")),
        following_count=count(item.get("followsCount")) or 0,
        posts_count=count(item.get("postsCount")) or 0,
        highlights_count=count(item.get("highlightReelCount")) or 0,
        is_private=flag(item.get("private")),
        is_verified=flag(item.get("verified")),
        is_business=flag(item.get("isBusinessAccount")),
        category=_category(item.get("businessCategoryName")),
        picture_url=address(item.get("profilePicUrlHD")) or address(item.get("profilePicUrl")),
        related_usernames=usernames(related),
        posts=newest_first(posts),
    )


def _category(value: object) -> str:
    """A category without its first part is returned as ``None,Public figure``."""
    parts = (part.strip() for part in text(value, 200).split(","))
    return ", ".join(part for part in parts if part and part != "None")


def _post(item: dict[str, Any], *, now: datetime) -> Post | None:
    short_code = text(item.get("shortCode"), 40)
    post_id = text(item.get("id"), 40) or short_code
    if not post_id:
        return None
    is_video = item.get("videoUrl") or item.get("videoViewCount")
    fallback_url = f"https://www.instagram.com/p/{short_code}/" if short_code else ""
    return Post(
        id=post_id,
        kind=KINDS.get(text(item.get("type")).lower(), "video" if is_video else "image"),
        url=address(item.get("url")) or fallback_url,
        caption=text(item.get("caption")),
        hashtags=names(listed(item.get("hashtags"))),
        mentions=names(listed(item.get("mentions"))),
        likes_count=count(item.get("likesCount")),
        comments_count=count(item.get("commentsCount")),
        video_views_count=count(item.get("videoViewCount")),
        posted_at=instant(item.get("timestamp"), now=now),
    )
