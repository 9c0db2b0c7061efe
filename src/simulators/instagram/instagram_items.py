"""Simulated profiles in the format of Apify's Instagram actors."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from simulators.instagram.profiles import SimulatedPost, SimulatedProfile, posted_at, profile_of

POSTS_DEFAULT = 12
PICTURES = "https://pictures.example"
Item = dict[str, Any]

MISSING = ("not_found", "Post does not exist")  # the actors use the same text for profiles
RESTRICTED = ("restricted_page", "Restricted access page, only partial data available")


def profile_item(name: str, posts_max: int, now: datetime) -> Item:
    profile = profile_of(name)
    error_found = error_item(profile)
    if error_found is not None:
        return error_found
    item: Item = {
        "inputUrl": address_of(name),
        "id": profile.id,
        "username": name,
        "url": address_of(name),
        "fullName": profile.full_name,
        "biography": profile.biography,
        "followersCount": profile.followers,
        "followsCount": profile.follows,
        "postsCount": profile.posts_count,
        "private": profile.kind == "private",
        "verified": profile.is_verified,
    }
    if profile.kind != "sparse":
        item |= _optional(profile)
    if profile.kind != "private":
        item["latestPosts"] = [post_item(profile, post, now) for post in profile.posts(posts_max)]
    return item


def _optional(profile: SimulatedProfile) -> Item:
    links = [{"title": "Website", "url": profile.website, "link_type": "external"}] if profile.website else []
    return {
        "externalUrl": profile.website or None,
        "externalUrls": links,
        "hasChannel": False,
        "highlightReelCount": profile.highlights,
        "isBusinessAccount": profile.is_business,
        "joinedRecently": False,
        "businessCategoryName": profile.category if profile.is_business else None,
        "profilePicUrl": f"{PICTURES}/{profile.id}_150.jpg",
        "profilePicUrlHD": f"{PICTURES}/{profile.id}_320.jpg",
        "igtvVideoCount": 0,
        "relatedProfiles": [
            {"id": profile_of(name).id, "username": name, "full_name": profile_of(name).full_name}
            for name in profile.related
        ],
    }


def error_item(profile: SimulatedProfile) -> Item | None:
    kinds = {"missing": MISSING, "restricted": RESTRICTED}
    if profile.kind not in kinds:
        return None
    error, description = kinds[profile.kind]
    return {
        "url": address_of(profile.username),
        "username": profile.username,
        "error": error,
        "errorDescription": description,
    }


def post_item(profile: SimulatedProfile, post: SimulatedPost, now: datetime) -> Item:
    item: Item = {
        "id": post.id,
        "type": post.kind,
        "shortCode": post.shortcode,
        "url": f"https://www.instagram.com/p/{post.shortcode}/",
        "timestamp": posted_at(post, now).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "ownerUsername": profile.username,
        "ownerId": profile.id,
    }
    if profile.kind == "sparse":
        return item
    item |= {
        "caption": post.caption,
        "hashtags": list(post.tags),
        "mentions": list(post.mentions),
        "likesCount": post.likes,
        "commentsCount": post.comments,
        "displayUrl": f"{PICTURES}/{post.id}.jpg",
        "dimensionsHeight": 1_350,
        "dimensionsWidth": 1_080,
        "images": [],
        "alt": None,
        "isPinned": False,
    }
    if post.views is not None:
        item |= {"videoUrl": f"{PICTURES}/{post.id}.mp4", "videoViewCount": post.views}
    return item


def post_items(name: str, posts_max: int, now: datetime) -> list[Item]:
    """Returns one item per post, in the format of the post actor."""
    profile = profile_of(name)
    error_found = error_item(profile)
    if error_found is not None:
        return [error_found]
    if not profile.posts_public:
        nothing = {"error": "no_items", "errorDescription": "Empty or private data for provided input"}
        return [{"url": address_of(name), "username": name, **nothing}]
    return [post_item(profile, post, now) for post in profile.posts(posts_max)]


def post_items_count(name: str, posts_max: int) -> int:
    return min(posts_max, profile_of(name).posts_public) or 1  # an error is also an item


def address_of(name: str) -> str:
    return f"https://www.instagram.com/{name}"


def names_of(run_input: dict[str, Any]) -> list[str]:
    """Returns the usernames that a run must fetch, from usernames or addresses."""
    given: Iterable[Any] = [*(run_input.get("usernames") or ()), *(run_input.get("directUrls") or ())]
    parts = [str(one).split("?")[0].strip("/@ ").rpartition("/")[2] for one in given]
    return [part.lower().removeprefix("@") for part in parts if part]
