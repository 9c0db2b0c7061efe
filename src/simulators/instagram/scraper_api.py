"""Simulated ScraperAPI: pages by address, generated from the simulated profiles and topics."""

import string
from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import msgspec
from litestar import Response, Router, get

from simulators.faults.provider_requests import AnyRequest
from simulators.instagram.instagram_items import PICTURES
from simulators.instagram.niches import NICHES, Niche
from simulators.instagram.profiles import (
    SimulatedPost,
    SimulatedProfile,
    posted_at,
    profile_of,
    seeded_random,
)

PATH = "/scraperapi"
POSTS_MAX = 12
PROFILE_PATH = "/api/v1/users/web_profile_info/"
TYPES = {"Image": "GraphImage", "Video": "GraphVideo", "Sidecar": "GraphSidecar"}
# Credits without and with rendering, by the kind of proxy.
CREDITS = {"": (1, 10), "premium": (10, 25), "ultra_premium": (30, 75)}
Json = dict[str, Any]


@get("/", sync_to_thread=False)
def fetch(request: AnyRequest) -> Response[str | bytes]:
    query = request.query_params
    if not query.get("api_key"):
        message = "Unauthorized request, please make sure your API key is valid."
        return Response(message, status_code=401, media_type="text/plain")
    url = urlsplit(query.get("url", ""))
    if url.scheme not in {"http", "https"} or not url.hostname:
        return Response("Please provide a valid url.", status_code=400, media_type="text/plain")
    status, content, media_type = _target(url.geturl())
    headers = {
        "sa-credit-cost": str(_credits(query)),
        "sa-final-url": quote(url.geturl(), safe=string.punctuation),
        "sa-statuscode": str(status),
    }
    return Response(content, status_code=status, media_type=media_type, headers=headers)


def _credits(query: Mapping[str, str]) -> int:
    pool = next((name for name in ("ultra_premium", "premium") if query.get(name) == "true"), "")
    return CREDITS[pool][query.get("render") == "true"]


def _target(address: str) -> tuple[int, str | bytes, str]:
    url = urlsplit(address)
    if url.hostname not in {"www.instagram.com", "i.instagram.com"} or url.path != PROFILE_PATH:
        return 200, article(address), "text/html"
    name = parse_qs(url.query).get("username", [""])[0].lower()
    profile = profile_of(name)
    if profile.kind == "missing" or not name:
        return 404, b'{"message":"","status":"fail"}', "application/json"
    user = None if profile.kind == "restricted" else _user(profile, datetime.now(UTC))
    return 200, msgspec.json.encode({"data": {"user": user}, "status": "ok"}), "application/json"


def _user(profile: SimulatedProfile, now: datetime) -> Json:
    return {
        "id": profile.id,
        "username": profile.username,
        "full_name": profile.full_name,
        "biography": profile.biography,
        "external_url": profile.website or None,
        "bio_links": [{"title": "", "url": profile.website}] if profile.website else [],
        "edge_followed_by": {"count": profile.followers},
        "edge_follow": {"count": profile.follows},
        "is_private": profile.kind == "private",
        "is_verified": profile.is_verified,
        "is_business_account": profile.is_business,
        "category_name": profile.category if profile.is_business else None,
        "highlight_reel_count": profile.highlights,
        "profile_pic_url": f"{PICTURES}/{profile.id}_150.jpg",
        "profile_pic_url_hd": f"{PICTURES}/{profile.id}_320.jpg",
        "edge_related_profiles": {"edges": [{"node": {"username": name}} for name in profile.related]},
        "edge_owner_to_timeline_media": {
            "count": profile.posts_count,
            "page_info": {"has_next_page": profile.posts_public > POSTS_MAX, "end_cursor": None},
            "edges": [{"node": _node(post, now)} for post in profile.posts(POSTS_MAX)],
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


PARAGRAPHS_MIN, PARAGRAPHS_MAX = 8, 30
PARAGRAPHS_PER_HEADING = 4
SENTENCES = (
    "Most people begin with {topic} and only later ask why.",
    "What helps is to write down what you want from {topic} before you start.",
    "We asked readers about {topic}; every second one had tried it twice.",
    "The cost of {topic} is rarely money and often time.",
    "A week is enough to see whether {topic} suits you.",
    "There are two mistakes with {topic}: to hurry, and to wait for the right moment.",
    "None of this replaces advice from an expert.",
    "Compare the results after a month, not after a day.",
)


def article(url: str) -> str:
    rng = seeded_random("article", url)
    niche = NICHES[rng.choice(sorted(NICHES))]
    words = unquote(urlsplit(url).path).strip("/").rpartition("/")[2].rpartition(".")[0] or ""
    slug = (
        (words or unquote(urlsplit(url).path).strip("/").rpartition("/")[2])
        .replace("-", " ")
        .replace("_", " ")
    )
    title = escape((slug or f"{rng.choice(niche.topics)}, explained").strip().capitalize())
    body = [f"<h1>{title}</h1>"]
    for number in range(rng.randint(PARAGRAPHS_MIN, PARAGRAPHS_MAX)):
        if number % PARAGRAPHS_PER_HEADING == 0:
            body.append(f"<h2>{escape(rng.choice(niche.topics)).capitalize()}</h2>")
        count = rng.randint(2, 5)
        sentences = [rng.choice(SENTENCES).format(topic=rng.choice(niche.topics)) for _ in range(count)]
        body.append(f"<p>{escape(' '.join(sentences))}</p>")
    return _page(title, niche, escape(url, quote=True), "\n".join(body))


def _page(title: str, niche: Niche, url: str, body: str) -> str:
    description = escape(f"{niche.category}: {niche.offers[0]}. {title}.", quote=True)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta name="description" content="{description}">\n<link rel="canonical" href="{url}">\n'
        f"</head><body><main><article>\n{body}\n</article></main></body></html>\n"
    )
