"""Simulated profiles: a username always returns the same profile with the same posts.

The prefix of a username selects a kind: ``private``, ``missing``, ``restricted`` (visible after sign-in),
``huge`` (tens of millions of followers, the longest captions), ``nonlatin`` (other scripts, emoji, direction
marks), ``hostile`` (instructions to a model, HTML, control characters in every text), ``empty`` (no posts, no
biography), ``sparse`` (required fields only). Of all other usernames about 4 % are private and 2 % missing.
Times are relative to the start of the day.
"""

import hashlib
import math
import random
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec

from simulators.instagram.captions import biography_of, caption_of, full_name, username
from simulators.instagram.niches import NICHES, Niche

KINDS = ("private", "missing", "restricted", "huge", "nonlatin", "hostile", "empty", "sparse")
PRIVATE_SHARE, MISSING_SHARE = 0.04, 0.02
FOLLOWERS_MIN, FOLLOWERS_MAX = 200, 5_000_000
POSTS_MAX = 72  # posts that can be fetched, however many the profile has
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


class SimulatedPost(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    shortcode: str
    kind: str  # Image, Video, Sidecar
    caption: str
    tags: tuple[str, ...]
    mentions: tuple[str, ...]
    likes: int
    comments: int
    views: int | None
    age: timedelta  # relative to the start of the day


class SimulatedProfile(msgspec.Struct, frozen=True, kw_only=True):
    username: str
    kind: str  # one of KINDS, or ordinary
    id: str
    full_name: str
    biography: str
    category: str
    website: str
    followers: int
    follows: int
    posts_count: int
    highlights: int
    is_verified: bool
    is_business: bool
    related: tuple[str, ...]

    @property
    def posts_public(self) -> int:
        """Returns how many posts can be fetched: 0 for a profile that is not public."""
        return 0 if self.kind in {"empty", "private", "missing", "restricted"} else POSTS_MAX

    def posts(self, count: int = POSTS_MAX) -> tuple[SimulatedPost, ...]:
        """Newest first."""
        return _posts(self.username, self.kind, self.followers, min(count, self.posts_public))


def seeded_random(*parts: object) -> random.Random:
    """Returns a generator with the same sequence for the same parts, in every process."""
    seed = hashlib.blake2b(repr(parts).encode("utf-8", "replace"), digest_size=16).digest()
    return random.Random(seed)  # noqa: S311  must be predictable


def kind_of(name: str) -> str:
    for kind in KINDS:
        if name.startswith(kind):
            return kind
    share = seeded_random("kind", name).random()
    if share < PRIVATE_SHARE:
        return "private"
    return "missing" if share < PRIVATE_SHARE + MISSING_SHARE else "ordinary"


@lru_cache(maxsize=2_048)
def profile_of(name: str) -> SimulatedProfile:
    kind, rng = kind_of(name), seeded_random("person", name)
    niche = niche_of(name)
    followers = rng.randint(20_000_000, 90_000_000) if kind == "huge" else _followers(rng)
    posts_count = 0 if kind == "empty" else POSTS_MAX + int(rng.paretovariate(1.1) * 20)
    return SimulatedProfile(
        username=name,
        kind=kind,
        id=str(rng.randrange(10**8, 6 * 10**10)),
        full_name="山田 さくら 🌸" if kind == "nonlatin" else full_name(rng),
        biography=biography_of(rng, kind, niche),
        category=niche.category,
        website=f"https://{username(rng).replace('_', '-')}.example" if rng.random() < 0.6 else "",  # noqa: PLR2004
        followers=followers,
        follows=min(7_500, int(rng.lognormvariate(6, 0.8))),
        posts_count=posts_count,
        highlights=rng.randint(0, 30),
        is_verified=kind == "huge" or rng.random() < followers / FOLLOWERS_MAX / 2,
        is_business=rng.random() < 0.6,  # noqa: PLR2004
        related=tuple(username(rng) for _ in range(rng.randint(0, 8))),
    )


def niche_of(name: str) -> Niche:
    return NICHES[seeded_random("niche", name).choice(sorted(NICHES))]


def _followers(rng: random.Random) -> int:
    low, high = math.log(FOLLOWERS_MIN), math.log(FOLLOWERS_MAX)
    return int(math.exp(low + (high - low) * rng.betavariate(1.4, 2.2)))


@lru_cache(maxsize=512)
def _posts(name: str, kind: str, followers: int, count: int) -> tuple[SimulatedPost, ...]:
    rng, niche = seeded_random("posts", name), niche_of(name)
    # Larger accounts have a lower engagement rate.
    engagement = min(0.2, 0.25 * followers**-0.2 * rng.lognormvariate(0, 0.4))
    days_between = rng.lognormvariate(0.6, 0.7)
    age = timedelta(hours=rng.uniform(1, 48))
    posts: list[SimulatedPost] = []
    for number in range(count):
        author = (kind, niche, followers * engagement)
        posts.append(_post(seeded_random("post", name, number), *author, age))
        age += timedelta(days=max(0.1, rng.expovariate(1 / days_between)))
    return tuple(posts)


def _post(rng: random.Random, kind: str, niche: Niche, likes: float, age: timedelta) -> SimulatedPost:
    caption, tags, mentions = caption_of(rng, kind, niche)
    form = rng.choices(("Image", "Sidecar", "Video"), (4, 3, 3))[0]
    liked = int(likes * rng.lognormvariate(0, 0.35))
    return SimulatedPost(
        id=str(rng.randrange(3 * 10**18, 4 * 10**18)),
        shortcode="".join(rng.choices(LETTERS, k=11)),
        kind=form,
        caption=caption,
        tags=tuple(tags),
        mentions=tuple(mentions),
        likes=liked,
        comments=int(liked * rng.uniform(0.005, 0.06)),
        views=int(liked * rng.uniform(8, 30)) if form == "Video" else None,
        age=age,
    )


def posted_at(post: SimulatedPost, now: datetime) -> datetime:
    """Returns the same time for the whole day."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return (today - post.age).replace(microsecond=0)
