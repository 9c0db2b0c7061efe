"""Simulated ScraperAPI: pages by address, generated from the simulated profiles and articles."""

import string
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import msgspec
from litestar import Response, Router, get

from simulators.faults.provider_errors import AnyRequest
from simulators.instagram.articles import article
from simulators.instagram.instagram_items import PICTURES
from simulators.instagram.profiles import Person, SimulatedPost, person_of, posted_at

PATH = "/scraperapi"
POSTS_MAX = 12
PROFILE_PATH = "/api/v1/users/web_profile_info/"
TYPES = {"Image": "GraphImage", "Video": "GraphVideo", "Sidecar": "GraphSidecar"}
# Credits without and with rendering, by the kind of proxy.
CREDITS = {"": (1, 10), "premium": (10, 25), "ultra_premium": (30, 75)}
Json = dict[str, Any]


@get("/", sync_to_thread=False)
def fetch(request: AnyRequest) -> Response[str | bytes]:
    asked = request.query_params
    if not asked.get("api_key"):
        message = "Unauthorized request, please make sure your API key is valid."
        return Response(message, status_code=401, media_type="text/plain")
    url = urlsplit(asked.get("url", ""))
    if url.scheme not in {"http", "https"} or not url.hostname:
        return Response("Please provide a valid url.", status_code=400, media_type="text/plain")
    status, content, media_type = _target(url.geturl())
    headers = {
        "sa-credit-cost": str(_credits(asked)),
        "sa-final-url": quote(url.geturl(), safe=string.punctuation),
        "sa-statuscode": str(status),
    }
    return Response(content, status_code=status, media_type=media_type, headers=headers)


def _credits(asked: Mapping[str, str]) -> int:
    pool = next((name for name in ("ultra_premium", "premium") if asked.get(name) == "true"), "")
    return CREDITS[pool][asked.get("render") == "true"]


def _target(address: str) -> tuple[int, str | bytes, str]:
    url = urlsplit(address)
    if url.hostname not in {"www.instagram.com", "i.instagram.com"} or url.path != PROFILE_PATH:
        return 200, article(address), "text/html"
    name = parse_qs(url.query).get("username", [""])[0].lower()
    person = person_of(name)
    if person.kind == "missing" or not name:
        return 404, b'{"message":"","status":"fail"}', "application/json"
    user = None if person.kind == "restricted" else _user(person, datetime.now(UTC))
    return 200, msgspec.json.encode({"data": {"user": user}, "status": "ok"}), "application/json"


def _user(person: Person, now: datetime) -> Json:
    return {
        "id": person.id,
        "username": person.username,
        "full_name": person.full_name,
        "biography": person.biography,
        "external_url": person.website or None,
        "bio_links": [{"title": "", "url": person.website}] if person.website else [],
        "edge_followed_by": {"count": person.followers},
        "edge_follow": {"count": person.follows},
        "is_private": person.kind == "private",
        "is_verified": person.is_verified,
        "is_business_account": person.is_business,
        "category_name": person.category if person.is_business else None,
        "highlight_reel_count": person.highlights,
        "profile_pic_url": f"{PICTURES}/{person.id}_150.jpg",
        "profile_pic_url_hd": f"{PICTURES}/{person.id}_320.jpg",
        "edge_related_profiles": {"edges": [{"node": {"username": name}} for name in person.related]},
        "edge_owner_to_timeline_media": {
            "count": person.posts_count,
            "page_info": {"has_next_page": person.posts_seen > POSTS_MAX, "end_cursor": None},
            "edges": [{"node": _node(post, now)} for post in person.posts(POSTS_MAX)],
        },
    }


def _node(post: SimulatedPost, now: datetime) -> Json:
    caption = [{"node": {"text": post.caption}}] if post.caption else []
    return {
        "__typename": TYPES[post.kind],
        "id": post.id,
        "shortcode": post.shortcode,
        "edge_media_to_caption": {"edges": caption},
        "edge_media_to_comment": {"count": post.comments},
        "edge_liked_by": {"count": post.likes},
        "edge_media_preview_like": {"count": post.likes},
        "taken_at_timestamp": int(posted_at(post, now).timestamp()),
        "display_url": f"{PICTURES}/{post.id}.jpg",
        "is_video": post.kind == "Video",
        **({} if post.views is None else {"video_view_count": post.views}),
    }


def scraper_api_router() -> Router:
    return Router(PATH, route_handlers=[fetch])
