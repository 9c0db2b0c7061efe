"""Simulated profiles in the format of Apify's Instagram actors."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from simulators.instagram.profiles import Person, SimulatedPost, person_of, posted_at

POSTS_USUAL = 12
PICTURES = "https://pictures.example"
Item = dict[str, Any]

MISSING = ("not_found", "Post does not exist")  # the actors use the same text for profiles
RESTRICTED = ("restricted_page", "Restricted access page, only partial data available")


def profile_item(name: str, posts_max: int, now: datetime) -> Item:
    person = person_of(name)
    refusal = refusal_item(person)
    if refusal is not None:
        return refusal
    item: Item = {
        "inputUrl": address_of(name),
        "id": person.id,
        "username": name,
        "url": address_of(name),
        "fullName": person.full_name,
        "biography": person.biography,
        "followersCount": person.followers,
        "followsCount": person.follows,
        "postsCount": person.posts_count,
        "private": person.kind == "private",
        "verified": person.is_verified,
    }
    if person.kind != "sparse":
        item |= _optional(person)
    if person.kind != "private":
        item["latestPosts"] = [post_item(person, post, now) for post in person.posts(posts_max)]
    return item


def _optional(person: Person) -> Item:
    links = [{"title": "Website", "url": person.website, "link_type": "external"}] if person.website else []
    return {
        "externalUrl": person.website or None,
        "externalUrls": links,
        "hasChannel": False,
        "highlightReelCount": person.highlights,
        "isBusinessAccount": person.is_business,
        "joinedRecently": False,
        "businessCategoryName": person.category if person.is_business else None,
        "profilePicUrl": f"{PICTURES}/{person.id}_150.jpg",
        "profilePicUrlHD": f"{PICTURES}/{person.id}_320.jpg",
        "igtvVideoCount": 0,
        "relatedProfiles": [
            {"id": person_of(name).id, "username": name, "full_name": person_of(name).full_name}
            for name in person.related
        ],
    }


def refusal_item(person: Person) -> Item | None:
    kinds = {"missing": MISSING, "restricted": RESTRICTED}
    if person.kind not in kinds:
        return None
    error, description = kinds[person.kind]
    return {
        "url": address_of(person.username),
        "username": person.username,
        "error": error,
        "errorDescription": description,
    }


def post_item(person: Person, post: SimulatedPost, now: datetime) -> Item:
    item: Item = {
        "id": post.id,
        "type": post.kind,
        "shortCode": post.shortcode,
        "url": f"https://www.instagram.com/p/{post.shortcode}/",
        "timestamp": posted_at(post, now).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "ownerUsername": person.username,
        "ownerId": person.id,
    }
    if person.kind == "sparse":
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
    person = person_of(name)
    refusal = refusal_item(person)
    if refusal is not None:
        return [refusal]
    if not person.posts_seen:
        nothing = {"error": "no_items", "errorDescription": "Empty or private data for provided input"}
        return [{"url": address_of(name), "username": name, **nothing}]
    return [post_item(person, post, now) for post in person.posts(posts_max)]


def post_items_count(name: str, posts_max: int) -> int:
    return min(posts_max, person_of(name).posts_seen) or 1  # an error is also an item


def address_of(name: str) -> str:
    return f"https://www.instagram.com/{name}"


def names_of(run_input: dict[str, Any]) -> list[str]:
    """Returns the usernames that a run must fetch, from usernames or addresses."""
    given: Iterable[Any] = [*(run_input.get("usernames") or ()), *(run_input.get("directUrls") or ())]
    parts = [str(one).split("?")[0].strip("/@ ").rpartition("/")[2] for one in given]
    return [part.lower().removeprefix("@") for part in parts if part]
