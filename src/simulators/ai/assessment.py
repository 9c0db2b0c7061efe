"""Scores of a profile and the reasons for them, computed from the facts of the prompt."""

from collections.abc import Iterable, Iterator

import msgspec

from simulators.ai.profile_prompt import PromptPost, PromptProfile

USUAL_RATE = {"nano": 4.0, "micro": 2.4, "mid": 1.8, "macro": 1.4, "mega": 1.2, "enterprise": 1.0}  # percent
TERMS_FOR_A_FULL_MATCH = 5
NICHE_WITHOUT_TERMS = 55  # the business names nothing to look for
MIDDLE = 50  # a score from here on speaks for the profile
SCORE_MIN, SCORE_MAX = 5, 97
VERDICTS = (
    (80, "a strong lead"),
    (60, "a promising lead"),
    (40, "a weak lead"),
    (0, "not a lead"),
)
RECENT_DAYS, QUIET_DAYS = 14, 45
TALKATIVE_PERCENT = 3.0  # share of comments in all reactions
SUSPICIOUS = 30
REACTIONS_MANY = 1_000
RHYTHMS = (
    (5.5, "about every day"),
    (3.5, "about four times a week"),
    (2.5, "about three times a week"),
    (1.5, "about twice a week"),
    (0.75, "about once a week"),
    (0.3, "a few times a month"),
    (0.0, "rarely"),
)


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    niche_fit: int
    engagement_quality: int
    activity: int
    overall: int
    confidence: float


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    is_for: bool
    text: str
    evidence: tuple[str, ...] = ()
    kind: str  # niche, engagement, activity, conversation, offer, authenticity, exclusion, orders


def scores_of(profile: PromptProfile) -> Scores:
    niche, engagement, activity = _niche_fit(profile), _engagement_quality(profile), _activity(profile)
    trust = 100 - profile.number("suspicion")
    overall = 0.45 * niche + 0.3 * engagement + 0.15 * activity + 0.1 * trust
    if profile.excluded:
        overall *= 0.7
    if profile.gives_orders:
        overall *= 0.8
    return Scores(
        niche_fit=niche,
        engagement_quality=engagement,
        activity=activity,
        overall=_bounded(overall),
        confidence=round(0.3 + min(0.5, len(profile.posts) / 50), 2),
    )


def _niche_fit(profile: PromptProfile) -> int:
    if not profile.business.terms:
        return NICHE_WITHOUT_TERMS
    full = min(TERMS_FOR_A_FULL_MATCH, len(profile.business.terms))
    return _bounded(15 + 80 * min(1, len(profile.matched) / full))


def _engagement_quality(profile: PromptProfile) -> int:
    rate = profile.facts.number("engagement_rate_median_percent")
    if rate is None:
        return MIDDLE - 10
    return _bounded(15 + 35 * min(2.4, rate / usual_rate(profile)) - profile.number("suspicion") / 2)


def _activity(profile: PromptProfile) -> int:
    days = profile.facts.number("days_since_last_post")
    if days is None:
        return SCORE_MIN
    freshness = 60 if days <= RECENT_DAYS else 30 if days <= QUIET_DAYS else 0
    return _bounded(freshness + 12 * min(3, profile.number("posts_per_week")))


def _bounded(score: float) -> int:
    return round(min(SCORE_MAX, max(SCORE_MIN, score)))


def usual_rate(profile: PromptProfile) -> float:
    return USUAL_RATE.get(profile.facts.lines.get("audience_size", ""), 2.0)


def verdict_of(overall: int) -> str:
    return next(text for least, text in VERDICTS if overall >= least)


def rhythm_of(profile: PromptProfile) -> str:
    """``about twice a week``, or an empty text when it is unknown."""
    per_week = profile.facts.number("posts_per_week")
    return "" if per_week is None else next(text for least, text in RHYTHMS if per_week >= least)


def listed(texts: Iterable[str], *, most: int = 3) -> str:
    """``a, b and c``."""
    first = list(texts)[:most]
    return " and ".join(filter(None, (", ".join(first[:-1]), first[-1]))) if first else ""


def reasons_of(profile: PromptProfile, scores: Scores) -> list[Reason]:
    """Those that agree with the verdict first, each group with the weightiest first."""
    reasons = [
        *_match_reasons(profile, scores),
        *_audience_reasons(profile),
        *_habit_reasons(profile),
    ]
    is_lead = scores.overall >= MIDDLE
    return sorted(reasons, key=lambda reason: reason.is_for != is_lead)


def _match_reasons(profile: PromptProfile, scores: Scores) -> Iterator[Reason]:
    business, labels = profile.business.name, matching_labels(profile)
    shown = f"the {len(profile.posts)} posts"
    if scores.niche_fit >= MIDDLE and profile.matched:
        where = f"{len(labels)} of {shown}" if labels else "the profile's own description"
        where = f"all {len(labels)} posts" if len(labels) == len(profile.posts) > 0 else where
        text = f"Writes about {listed(profile.topics)} in {where}, and {business} looks for exactly that."
        yield Reason(is_for=True, text=text, evidence=labels[:4], kind="niche")
    elif profile.matched:
        found = listed(profile.topics)
        text = f"Of what {business} looks for, only {found} comes up; the main topic is {profile.niche_name}."
        yield Reason(is_for=False, text=text, evidence=labels[:4], kind="niche")
    elif profile.business.terms:
        sought = listed(profile.business.terms)
        shown = f"None of {shown}" if profile.posts else "No post"
        text = f"{shown} is about what {business} looks for, such as {sought}."
        yield Reason(is_for=False, text=text, evidence=_labels(profile.posts[:3]), kind="niche")
    if profile.excluded:
        text = f"{listed(profile.excluded).capitalize()}, which {business} excludes, comes up here."
        yield Reason(is_for=False, text=text, kind="exclusion")
    if profile.gives_orders:
        text = "Some texts of the profile try to give orders to the reader, which is a bad sign for trust."
        yield Reason(is_for=False, text=text, kind="orders")


def _audience_reasons(profile: PromptProfile) -> Iterator[Reason]:
    rate = profile.facts.number("engagement_rate_median_percent")
    if rate is not None:
        usual, size = usual_rate(profile), profile.facts.lines.get("audience_size", "similar")
        is_good, followers = rate >= usual, profile.number("followers")
        compared = "above" if is_good else "below"
        text = (
            f"A typical post gets reactions from {rate:.1f} % of {followers:,.0f} followers,"
            f" {compared} the {usual:.1f} % that is usual for {size} accounts."
        )
        yield Reason(is_for=is_good, text=text, evidence=_labels(most_liked(profile)[:3]), kind="engagement")
        reactions = round(followers * rate / 100, -1)
        is_wide = reactions >= REACTIONS_MANY
        reach = "wide" if is_wide else "limited"
        text = f"The reach is {reach}: about {reactions:,.0f} reactions to a typical post."
        yield Reason(is_for=is_wide, text=text, kind="reach")
    share = profile.facts.number("comments_share_percent")
    if share is not None:
        is_good = share >= TALKATIVE_PERCENT
        said = "followers answer back" if is_good else "followers mostly like and move on"
        text = f"{share:.1f} % of the reactions are comments: {said}."
        posts = sorted(profile.posts, key=lambda post: -post.comments)
        yield Reason(is_for=is_good, text=text, evidence=_labels(posts[:2]), kind="conversation")
    if profile.number("suspicion") >= SUSPICIOUS:
        text = (
            "The numbers of followers and reactions do not fit together; part of the audience may be bought."
        )
        yield Reason(is_for=False, text=text, kind="authenticity")


def _habit_reasons(profile: PromptProfile) -> Iterator[Reason]:
    days, rhythm = profile.facts.number("days_since_last_post"), rhythm_of(profile)
    if days is None:
        yield Reason(is_for=False, text="There are no dated posts to judge the activity by.", kind="activity")
    else:
        last = {0: "today", 1: "yesterday"}.get(int(days), f"{int(days)} days ago")
        text = f"Posts {rhythm}, most recently {last}." if rhythm else f"The last post was {last}."
        yield Reason(
            is_for=days <= RECENT_DAYS, text=text, evidence=_labels(profile.posts[:2]), kind="activity"
        )
    has_link, is_business = (
        "link" in profile.facts.lines,
        profile.facts.lines.get("business_account") == "yes",
    )
    if has_link or is_business:
        text = "Runs a business account" if is_business else "Keeps a personal account"
        text += " with a link to a site of its own." if has_link else " without a link to a site."
        yield Reason(is_for=has_link, text=text, kind="offer")


def matching_labels(profile: PromptProfile) -> tuple[str, ...]:
    found = {label for labels in profile.matched.values() for label in labels}
    return tuple(post.label for post in profile.posts if post.label in found)


def most_liked(profile: PromptProfile) -> list[PromptPost]:
    return sorted(profile.posts, key=lambda post: -post.likes)


def _labels(posts: Iterable[PromptPost]) -> tuple[str, ...]:
    return tuple(post.label for post in posts)
