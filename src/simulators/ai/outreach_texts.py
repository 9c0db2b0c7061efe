"""Outreach messages of a simulated analysis."""

import re
from collections.abc import Iterator

from simulators.ai.analysis_texts import lowered
from simulators.ai.assessment import RECENT_DAYS, most_liked, rhythm_of
from simulators.ai.profile_prompt import PromptPost, PromptProfile
from simulators.faults.provider_requests import Document

_FREE = re.compile(r"\bfree ([a-z][a-z -]{2,40}[a-z])", re.IGNORECASE)
KINDS = {"video": "video", "carousel": "carousel", "image": "photo"}


def outreach(profile: PromptProfile) -> Document:
    posts = profile.best_posts
    return {
        "language": "en",
        "talking_points": list(_talking_points(profile)),
        "avoid": list(_avoid(profile)),
        "messages": [
            _direct_message(profile, posts[0] if posts else None),
            _email(profile, posts[1] if len(posts) > 1 else None),
            _comment(profile, posts[2] if len(posts) > 2 else None),  # noqa: PLR2004
        ],
    }


def _talking_points(profile: PromptProfile) -> Iterator[Document]:
    for post in profile.best_posts[:2]:
        text = f"“{post.quote}”: {_counted(post.likes, 'like')} and {_counted(post.comments, 'comment')}."
        yield {"text": text, "evidence": [post.label]}
    for term, labels in list(profile.matched.items())[:2]:
        if labels:
            posts = _counted(len(labels), "post")
            text = f"{term.capitalize()} comes up in {posts} and is a topic of {profile.business.name}."
            yield {"text": text, "evidence": labels[:4]}


def _avoid(profile: PromptProfile) -> Iterator[str]:
    yield "Numbers of followers or reach: the message would sound like a mailing."
    if profile.posts and profile.business.terms and not profile.matched:
        yield f"A claim that {profile.niche_name} is the business's own subject: it is not."
    if profile.facts.lines.get("script", "unknown") not in {"latin", "unknown"}:
        yield "A long text in English: the captions are written in another script."
    if profile.number("days_since_last_post") > RECENT_DAYS:
        yield "A deadline: the last post is some time ago."


def _direct_message(profile: PromptProfile, post: PromptPost | None) -> Document:
    return {
        "channel": "direct_message",
        "subject": "",
        "opening": f"{_greeting(profile)}, {_mention(profile, post)} made me stop and read.",
        "message": f"{_introduction(profile)} {_connection(profile)} {_call_to_action(profile)}",
    }


def _email(profile: PromptProfile, post: PromptPost | None) -> Document:
    name, promise = profile.business.texts.get("name"), profile.business.texts.get("value_proposition", "")
    promised = f" In one line: {lowered(promise.rstrip('.'))}." if promise else ""
    paragraphs = [f"{_introduction(profile)}{promised}", _connection(profile)]
    paragraphs.append(f"{_call_to_action(profile)} A short reply is enough.")
    paragraphs.append(f"Best regards,\nThe {profile.business.name} team" if name else "Best regards")
    subject = f"{profile.business.name} and" if name else "A question about"
    return {
        "channel": "email",
        "subject": f"{subject} {'your posts on ' if profile.posts else ''}{profile.subject}",
        "opening": f"{_greeting(profile)}, I saw {_mention(profile, post)}{_reception(profile, post)}.",
        "message": "\n\n".join(paragraphs),
    }


def _comment(profile: PromptProfile, post: PromptPost | None) -> Document:
    quote = f"“{post.quote}”: saved, thank you." if post else "Thank you for sharing this."
    return {
        "channel": "comment",
        "subject": "",
        "opening": quote,
        "message": f"We have an idea about {profile.subject} that may suit you. May we send you a message?",
    }


def _greeting(profile: PromptProfile) -> str:
    return f"Hi {profile.first_name}" if profile.first_name else "Hello"


def _mention(profile: PromptProfile, post: PromptPost | None) -> str:
    if post is not None:
        return f"your {KINDS.get(post.kind, 'post')} “{post.quote}”"
    liked = next(iter(most_liked(profile)), None)
    if liked is None:
        return "your profile"
    kind = KINDS.get(liked.kind, "post")
    return f"your {kind} with {_counted(liked.likes, 'like')}" if liked.likes else f"your latest {kind}"


def _reception(profile: PromptProfile, post: PromptPost | None) -> str:
    """Mentions the likes only when they are more than those of half of the posts."""
    if post is None or post not in most_liked(profile)[: len(profile.posts) // 2]:
        return ""
    return f", and with {_counted(post.likes, 'like')} I was clearly not the only one who enjoyed it"


def _introduction(profile: PromptProfile) -> str:
    business = profile.business
    if not business.offer:
        named = business.name if "name" in business.texts else "a small brand"
        return f"I write for {named}, and we look for partners with a real audience."
    return f"I write for {business.name}. We offer {_continued(business.offer)}."


def _continued(offer: str) -> str:
    continued = lowered(offer)
    return continued if continued != offer else f"the following: {offer}"


def _connection(profile: PromptProfile) -> str:
    if not profile.posts:
        return "I would like to learn more about what you do."
    rhythm = rhythm_of(profile)
    often = f"You post {rhythm + ' ' if rhythm else ''}on {profile.subject}"
    if profile.matched:
        return f"{often}, and that is what we care about too."
    if not profile.business.terms:
        return f"{often}, and I would like to hear what your readers ask for."
    return f"{often}; our subject is another one, but I think your readers could like it."


def _call_to_action(profile: PromptProfile) -> str:
    gift = _FREE.search(profile.business.texts.get("outreach_goal", ""))
    if gift:
        return f"May I send you a free {gift[1]}, with no strings attached?"
    return "Would you have fifteen minutes for a call next week?"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
