"""Conversion of Instagram's ``web_profile_info`` responses into profiles."""

import re
from collections.abc import Generator
from datetime import datetime
from typing import Any, Literal

import msgspec

from features.analysis.domain.profile.profile import Post, Profile
from infrastructure.scraping.apify_mapping import MappedProfile, newest_first
from infrastructure.scraping.errors import ScrapeError
from infrastructure.scraping.field_parsing import (
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

POSTS_MAX = 12  # returned per response
KINDS: dict[str, Literal["image", "video", "carousel"]] = {
    "GraphImage": "image",
    "GraphVideo": "video",
    "GraphSidecar": "carousel",
}
WALLS = ("login_required", "geoblock_required", "age_restricted")
HASHTAG = re.compile(r"#(\w+)")
MENTION = re.compile(r"@(\w(?:[\w.]{0,28}\w)?)")


def read_web_profile(document: object, username: str, *, now: datetime) -> MappedProfile:
    """Raises ScrapeError when the document is not usable."""
    if not is_object(document):
        raise ScrapeError("malformed_response", detail="not an object")
    if text(document.get("message")) in WALLS:
        return MappedProfile("restricted")
    data = document.get("data")
    if not is_object(data) or "user" not in data:
        raise ScrapeError("malformed_response", detail="no user")
    user = data["user"]
    if user is None:
        return MappedProfile("not_found")
    if not is_object(user) or text(user.get("username")).lower() != username.lower():
        raise ScrapeError("malformed_response", detail="another profile, or none")
    profile = _profile(user, now=now)
    if profile.is_private:
        return MappedProfile("private", msgspec.structs.replace(profile, posts=()))
    return MappedProfile("ok", profile)


def _profile(user: dict[str, Any], *, now: datetime) -> Profile:
    links = (link.get("url") for link in listed(user.get("bio_links")) if is_object(link))
    posts = (_post(node, now=now) for node in _nodes(user.get("edge_owner_to_timeline_media")))
    related = (node.get("username") for node in _nodes(user.get("edge_related_profiles")))
    return Profile(
        username=text(user["username"]).lower(),
        id=text(user.get("id"), 40),
        full_name=text(user.get("full_name"), 200),
        biography=text(user.get("biography")),
        external_urls=addresses((user.get("external_url"), *links)),
        followers_count=required_count(_count_of(user, "edge_followed_by")),
        following_count=_number(user, "edge_follow") or 0,
        posts_count=_number(user, "edge_owner_to_timeline_media") or 0,
        highlights_count=count(user.get("highlight_reel_count")) or 0,
        is_private=flag(user.get("is_private")),
        is_verified=flag(user.get("is_verified")),
        is_business=flag(user.get("is_business_account")),
        category=text(user.get("category_name"), 200) or text(user.get("business_category_name"), 200),
        picture_url=address(user.get("profile_pic_url_hd")) or address(user.get("profile_pic_url")),
        related_usernames=usernames(related),
        posts=newest_first(posts)[:POSTS_MAX],
    )


def _post(node: dict[str, Any], *, now: datetime) -> Post | None:
    short_code = text(node.get("shortcode"), 40)
    post_id = text(node.get("id"), 40) or short_code
    if not post_id:
        return None
    caption = next((text(one.get("text")) for one in _nodes(node.get("edge_media_to_caption"))), "")
    likes_count = _number(node, "edge_liked_by")
    return Post(
        id=post_id,
        kind=KINDS.get(text(node.get("__typename")), "video" if flag(node.get("is_video")) else "image"),
        url=f"https://www.instagram.com/p/{short_code}/" if short_code else "",
        caption=caption,
        hashtags=names(HASHTAG.findall(caption)),
        mentions=names(MENTION.findall(caption)),
        likes_count=_number(node, "edge_media_preview_like") if likes_count is None else likes_count,
        comments_count=_number(node, "edge_media_to_comment"),
        video_views_count=count(node.get("video_view_count")),
        posted_at=instant(node.get("taken_at_timestamp"), now=now),
    )


def _number(thing: dict[str, Any], name: str) -> int | None:
    return count(_count_of(thing, name))


def _count_of(thing: dict[str, Any], name: str) -> object:
    edge = thing.get(name)
    return edge.get("count") if is_object(edge) else None


def _nodes(edges: object) -> Generator[dict[str, Any]]:
    for edge in listed(edges.get("edges")) if is_object(edges) else []:
        node = edge.get("node") if is_object(edge) else None
        if is_object(node):
            yield node
