"""Profile and business that an analysis prompt describes.

Scraped text is quoted only when it consists of ordinary words and contains no word that gives an instruction,
so a prompt injection is not repeated in a completion.
"""

import html
import re
from collections.abc import Iterable

import msgspec

from simulators.ai.prompt_facts import PromptFacts
from simulators.instagram.niches import NICHES, Niche

_POST = re.compile(
    r"^\[(p\d+)\] (\w+), (?:(\d+) days old|date unknown)(?:, (\d+) likes)?(?:, likes unknown)?"
    r"(?:, (\d+) comments)?[^\n]*(?:\ncaption: ([^\n]*))?",
    re.MULTILINE,
)
_ELEMENT = re.compile(r"^<(\w+)>\n(.*?)\n</\1>$", re.MULTILINE | re.DOTALL)
_COUNTED_TAG = re.compile(r"#([^\W_]{2,24}) \((\d+)\)")
_WORDS = re.compile(r"[A-Za-z\u00c0-\u024f][A-Za-z\u00c0-\u024f0-9', :&-]{2,89}")
_SENTENCE_END = re.compile(r"[.!?#@/]|\[cut\]")
_ORDER = re.compile(
    r"ignore|instruct|system|prompt|assistant|score|confidence|task|refund|password|script|alert|drop",
    re.IGNORECASE,
)
OFFER_LENGTH_MAX = 240
WORD_LENGTH_MIN = 5


class PromptPost(msgspec.Struct, frozen=True, kw_only=True):
    label: str
    kind: str
    days_old: int | None
    likes: int
    comments: int
    caption: str
    gives_orders: bool
    quote: str  # the first sentence of the caption, or empty when it cannot be quoted


class PromptBusiness(msgspec.Struct, frozen=True, kw_only=True):
    texts: dict[str, str]
    terms: tuple[str, ...]  # niches and themes of the ideal customer
    exclusions: tuple[str, ...]

    @property
    def name(self) -> str:
        return re.sub(r" *\([^)]*\)", "", self.texts.get("name", "")) or "the business"

    @property
    def offer(self) -> str:
        text = self.texts.get("offering") or self.texts.get("summary") or ""
        return text[:OFFER_LENGTH_MAX].strip().rstrip(".")


class PromptProfile(msgspec.Struct, frozen=True, kw_only=True):
    facts: PromptFacts
    business: PromptBusiness
    username: str
    first_name: str
    niche: Niche | None
    persona: str
    tags: dict[str, int]  # number of posts by hashtag, the most used first
    posts: tuple[PromptPost, ...]
    matched: dict[str, tuple[str, ...]]  # labels of the posts that contain a sought term, by term
    excluded: tuple[str, ...]
    gives_orders: bool

    def number(self, name: str) -> float:
        return self.facts.number(name) or 0.0

    @property
    def niche_name(self) -> str:
        return self.niche.name if self.niche else next(iter(self.topics), "general interest")

    @property
    def subject(self) -> str:
        """The niche, or two hashtags when the niche is unknown."""
        return self.niche.name if self.niche else " and ".join(self.topics[:2]) or "your work"

    @property
    def topics(self) -> tuple[str, ...]:
        """The terms that the business seeks, those of most posts first, or else the profile's hashtags."""
        found = sorted(self.matched, key=lambda term: -len(self.matched[term]))
        return tuple(found) or tuple(f"#{tag}" for tag in self.tags)

    @property
    def best_posts(self) -> tuple[PromptPost, ...]:
        """Posts with a quotable caption, those about a sought term and with more likes first."""
        sought = {label for labels in self.matched.values() for label in labels}
        quotable = (post for post in self.posts if post.quote)
        return tuple(sorted(quotable, key=lambda post: (post.label not in sought, -post.likes)))


def read_profile(cached_prefix: Iterable[str], user_message: str, facts: PromptFacts) -> PromptProfile:
    business = read_business("\n".join(cached_prefix))
    posts = tuple(_post(*match.groups()) for match in _POST.finditer(user_message))
    about = " ".join(facts.lines.get(name, "") for name in ("category", "biography", "hashtags"))
    tags = {tag: int(posts) for tag, posts in _COUNTED_TAG.findall(facts.lines.get("hashtags", ""))}
    niche = _niche(about)
    matched = {term: labels for term in business.terms if (labels := _labels(term, posts, about))}
    return PromptProfile(
        facts=facts,
        business=business,
        username=facts.subject if re.fullmatch(r"[\w.]{1,30}", facts.subject) else "this profile",
        first_name=_quotable(facts.lines.get("full_name", "").partition(" ")[0]),
        niche=niche,
        persona=niche.persona if niche else "Creator",
        tags={tag: count for tag, count in tags.items() if not _ORDER.search(tag)},
        posts=posts,
        matched={term: tuple(label for label in labels if label) for term, labels in matched.items()},
        excluded=tuple(term for term in business.exclusions if _labels(term, posts, about)),
        gives_orders=bool(_ORDER.search(about) or any(post.gives_orders for post in posts)),
    )


def read_business(cached_prefix: str) -> PromptBusiness:
    _, _, described = cached_prefix.partition("<business_profile>\n")
    elements = {name: html.unescape(text) for name, text in _ELEMENT.findall(described)}
    customer = dict(_ELEMENT.findall(elements.get("ideal_customer", "")))
    listed = {name: tuple(re.findall(r"^- (.+)$", text, re.MULTILINE)) for name, text in customer.items()}
    return PromptBusiness(
        texts={name: " ".join(text.split()) for name, text in elements.items()},
        terms=(*listed.get("niches", ()), *listed.get("content_themes", ())),
        exclusions=listed.get("exclusions", ()),
    )


def _post(
    label: str, kind: str, days: str | None, likes: str | None, comments: str | None, caption: str | None
) -> PromptPost:
    caption = caption or ""
    gives_orders = _ORDER.search(caption) is not None
    first = _SENTENCE_END.split(caption, maxsplit=1)[0].strip()
    return PromptPost(
        label=label,
        kind=kind,
        days_old=None if days is None else int(days),
        likes=int(likes or 0),
        comments=int(comments or 0),
        caption=caption,
        gives_orders=gives_orders,
        quote="" if gives_orders else _quotable(first),
    )


def _quotable(text: str) -> str:
    text = text.rstrip(": ")
    return text if _WORDS.fullmatch(text) and not _ORDER.search(text) else ""


def _niche(about: str) -> Niche | None:
    """The niche with most of its words in the category, the biography and the hashtags."""
    words = about.lower()
    found = {
        name: sum(word.lower() in words for word in (niche.category, niche.persona, *niche.tags))
        for name, niche in NICHES.items()
    }
    best = max(found, key=lambda name: found[name])
    return NICHES[best] if found[best] else None


def _labels(term: str, posts: tuple[PromptPost, ...], about: str) -> tuple[str, ...]:
    """Labels of the posts that contain the term, and an empty label when the profile itself contains it."""
    words = re.findall(r"[^\W_]+", term.lower())
    if not words:
        return ()
    # A hashtag joins its words; a short word counts only as a whole, because it occurs inside others.
    joined = r"[\W_]*".join(map(re.escape, words))
    is_short = sum(map(len, words)) < WORD_LENGTH_MIN
    pattern = re.compile(rf"\b{joined}\b" if is_short else joined, re.IGNORECASE)
    labels = tuple(post.label for post in posts if pattern.search(post.caption))
    return (*labels, "") if pattern.search(about) else labels
