"""Texts of a simulated analysis: judgement, audience, strengths, risks and the commercial side."""

from collections.abc import Iterable, Iterator

from simulators.ai.assessment import (
    MIDDLE,
    TALKATIVE_PERCENT,
    Reason,
    Scores,
    listed,
    most_liked,
    reasons_of,
    rhythm_of,
    scores_of,
    verdict_of,
)
from simulators.ai.profile_prompt import PromptProfile
from simulators.faults.provider_requests import Document

REASONS_LIGHT_MAX, REASONS_MAX = 5, 8
EVIDENCE_MAX = 4
LEVELS = ((70, "high"), (45, "medium"), (0, "low"))
SIZE_BUDGETS = {"nano": "low", "micro": "low", "mid": "medium"}
ARTICLES = frozenset(["A", "An", "The", "Our", "What", "How", "With", "From", "For"])
PAID_TAGS = frozenset({"ad", "anzeige", "sponsored", "werbung", "paidpartnership"})


def judgement(profile: PromptProfile, names: Iterable[str]) -> Document:
    """``names`` are the properties of the schema; more of them mean a more thorough judgement."""
    scores = scores_of(profile)
    reasons = reasons_of(profile, scores)
    is_commercial = "purchase_readiness" in names
    is_thorough = is_commercial or "audience" in names
    return {
        "summary": _commercial_summary(profile, scores) if is_commercial else _summary(profile, scores),
        "niche": profile.niche_name,
        "reasons": [
            {
                "effect": "for" if reason.is_for else "against",
                "text": reason.text,
                "evidence": reason.evidence,
            }
            for reason in reasons[: REASONS_MAX if is_thorough else REASONS_LIGHT_MAX]
        ],
        "niche_fit": scores.niche_fit,
        "engagement_quality": scores.engagement_quality,
        "overall": scores.overall,
        "confidence": scores.confidence,
        **_thorough(profile, scores, reasons),
        **_commercial(profile, scores, reasons),
    }


def introduction(profile: PromptProfile) -> str:
    """Describes the profile in one sentence without its full stop."""
    if not profile.posts:
        return "Profile without public posts"
    topics = f" ({listed(profile.topics)})" if profile.niche and profile.topics else ""
    rhythm = rhythm_of(profile)
    return f"{profile.persona} who posts {rhythm + ' ' if rhythm else ''}on {profile.niche_name}{topics}"


def _summary(profile: PromptProfile, scores: Scores) -> str:
    followers = f"{int(profile.number('followers')):,} followers"
    reaction = "well" if scores.engagement_quality >= MIDDLE else "little"
    verdict = f"Overall: {verdict_of(scores.overall)}."
    if not profile.posts:
        return f"{introduction(profile)} and with {followers}: there is little to judge. {verdict}"
    talk = "answer in the comments" if _is_talkative(profile) else "like more than they comment"
    return (
        f"{introduction(profile)}, for {followers} who {talk}. {_fit(profile, scores)}"
        f" and the audience reacts {reaction} for its size. {verdict}"
    )


def _fit(profile: PromptProfile, scores: Scores) -> str:
    if not profile.business.terms:
        return "The business names no topics to compare with,"
    is_fit = scores.niche_fit >= MIDDLE
    return f"The topics are {'' if is_fit else 'not '}those of {profile.business.name},"


def _is_talkative(profile: PromptProfile) -> bool:
    return profile.number("comments_share_percent") >= TALKATIVE_PERCENT


def points(texts: Iterable[tuple[str, Iterable[str]]]) -> list[Document]:
    return [{"text": text, "evidence": list(evidence)[:EVIDENCE_MAX]} for text, evidence in texts]


def _thorough(profile: PromptProfile, scores: Scores, reasons: list[Reason]) -> Document:
    audience = profile.niche.audience if profile.niche else "a mixed public"
    rate = profile.facts.number("engagement_rate_median_percent")
    reached = (
        ""
        if rate is None
        else f" A typical post gets a like or a comment from {rate:.1f} % of the followers."
    )
    return {
        "audience": f"Probably {audience}, by the topics of the posts.{reached}",
        "content_themes": list(profile.topics[:6]) or [profile.niche_name],
        "strengths": points((reason.text, reason.evidence) for reason in reasons if reason.is_for),
        "risks": points(_risks(profile, reasons)),
        "buying_signals": points(_buying_signals(profile)),
        "partnership_ideas": _ideas(profile, scores),
    }


def _risks(profile: PromptProfile, reasons: list[Reason]) -> Iterator[tuple[str, Iterable[str]]]:
    yield from ((reason.text, reason.evidence) for reason in reasons if not reason.is_for)
    if len(profile.posts) < 6:  # noqa: PLR2004
        yield "Few posts could be read, so the picture is incomplete.", ()
    videos, posts = int(profile.number("videos")), len(profile.posts)
    if posts and not videos:
        yield "There are no videos, so it is open how the profile would show a product in use.", ()


def _buying_signals(profile: PromptProfile) -> Iterator[tuple[str, Iterable[str]]]:
    for post in profile.posts:
        if "question" in post.caption.lower() and post.quote:
            yield f"Invites questions under “{post.quote}”, so a message is not out of place.", (post.label,)
            break
    if "link" in profile.facts.lines:
        yield "Links to a site of its own and so sells or collects something beyond Instagram.", ()
    if profile.facts.lines.get("business_account") == "yes":
        yield "Uses a business account, which is meant for requests of this kind.", ()


def _ideas(profile: PromptProfile, scores: Scores) -> list[str]:
    business, topic = profile.business.name, profile.niche_name
    if scores.overall < 40:  # noqa: PLR2004
        return [f"None for now: first see whether {topic} and {business} have anything in common."]
    ideas = [
        f"A post on {topic} in which {profile.first_name or 'the author'} tries out what {business} offers."
    ]
    if profile.number("videos"):
        ideas.append(f"A short video series on {topic}, made together and shown on both accounts.")
    if _is_talkative(profile):
        ideas.append(f"Questions and answers on {topic} in the comments, with {business} as the guest.")
    return ideas


def _commercial_summary(profile: PromptProfile, scores: Scores) -> str:
    readiness = _level(scores.overall)
    return (
        f"{introduction(profile)}. Readiness to work with {profile.business.name} looks {readiness}:"
        f" the topics match by {scores.niche_fit} % and the reactions of the audience"
        f" are rated {scores.engagement_quality} of 100."
        f" Commercially: {verdict_of(scores.overall)}."
    )


def _level(score: float) -> str:
    return next(level for least, level in LEVELS if score >= least)


def _commercial(profile: PromptProfile, scores: Scores, reasons: list[Reason]) -> Document:
    paid = sum(count for tag, count in profile.tags.items() if tag in PAID_TAGS)
    size = profile.facts.lines.get("audience_size", "")
    business = profile.business
    offer = lowered(business.offer) or "one small product to try"
    best = next(iter(profile.best_posts), None)
    return {
        "purchase_readiness": _level(scores.overall),
        "budget_level": SIZE_BUDGETS.get(size, "high") if size else "unknown",
        "sponsored_content": _level(100 * paid / max(1, len(profile.posts))) if paid else "none",
        "brand_partnerships": [],  # a caption shows handles, and a completion contains none
        "objections": points(_objections(profile, reasons)),
        "best_offer": (
            f"Offer what {business.name} is known for: {offer}."
            + (f" Tie it to “{best.quote}”, one of the posts with the most reactions." if best else "")
            + " Propose something small first and agree on more once it has worked."
        ),
    }


def _objections(profile: PromptProfile, reasons: list[Reason]) -> Iterator[tuple[str, Iterable[str]]]:
    name = profile.business.name
    if any(reason.kind == "niche" and not reason.is_for for reason in reasons):
        yield f"“What does {name} have to do with {profile.niche_name}?”", ()
    rhythm = rhythm_of(profile)
    if rhythm:
        labels = [post.label for post in profile.posts[:2]]
        yield f"“My schedule is full”: new posts appear {rhythm} and are planned ahead.", labels
    yield (
        "“My followers do not want advertising”: no post so far presents a brand.",
        [post.label for post in most_liked(profile)[:2]],
    )


def lowered(text: str) -> str:
    """Begins with a small letter where the first word is an article, because it continues a sentence."""
    return text[:1].lower() + text[1:] if text.split(" ", maxsplit=1)[0] in ARTICLES else text
