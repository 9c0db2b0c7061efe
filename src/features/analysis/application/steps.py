"""The steps of an analysis. What they return is kept by the engine, so that none is paid for twice."""

import asyncio
from dataclasses import dataclass

import msgspec

from features.analysis.application.conclusions import (
    AnalysisRequest,
    Answered,
    Considered,
    considered,
)
from features.analysis.application.ports import Analyst, Businesses
from features.analysis.application.profiles import REFUSALS, Profiles, ReadProfile
from features.analysis.domain.analysis import Answers
from features.analysis.domain.checks import CheckOutcome, Verdict, verdict_on
from features.analysis.domain.cleaning import clean_answer
from features.analysis.domain.errors import (
    BusinessGone,
    ProfileIsPrivate,
    ProfileNotFound,
    ProfileRestricted,
)
from features.analysis.domain.ideal_customer import UNDESCRIBED, Business
from features.analysis.domain.profile import POSTS_NEEDED, AnalysisType, Scrape

# Letters times words to look for: beyond that it takes so long that a thread does it.
COMPARISONS_MAX = 500_000
OUTCOMES: dict[type[Exception], CheckOutcome] = {error: outcome for outcome, error in REFUSALS.items()}


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """``read`` is there when the verdict is ok. The business is as it was at that moment."""

    verdict: Verdict
    business: Business
    read: ReadProfile | None = None


@dataclass(frozen=True, slots=True)
class AnalysisSteps:
    profiles: Profiles
    analyst: Analyst
    businesses: Businesses

    async def look(self, request: AnalysisRequest) -> Looked:
        """Whom nobody can see, or nobody wants, is a verdict and no error. Raises BusinessGone and
        ProfilesUnavailable.
        """
        business = await self._business(request)
        try:
            read = await self.profiles.read(
                request.username,
                request.analysis_type,
                spender=request.spender,
                is_bypassed=request.is_fresh,
            )
        except (ProfileIsPrivate, ProfileNotFound, ProfileRestricted) as refusal:
            return Looked(verdict=Verdict(outcome=OUTCOMES[type(refusal)]), business=business)
        verdict = verdict_on(_scrape(read, request.analysis_type), business.ideal_customer)
        return Looked(verdict=verdict, business=business, read=read if verdict.outcome == "ok" else None)

    async def consider(self, request: AnalysisRequest, looked: Looked) -> Considered:
        assert looked.read is not None, "only what was seen can be considered"
        if _comparisons(looked.read, looked.business) > COMPARISONS_MAX:
            return await asyncio.to_thread(considered, request, looked.read, looked.business)
        return considered(request, looked.read, looked.business)

    async def ask(self, name: str, subject: Considered) -> Answered:
        """Raises ModelsUnavailable, AnswerMalformed, AnswerRefused and QuestionInvalid."""
        answer = await self.analyst.answer(subject.questions[name])
        cleaned = clean_answer(answer.value, subject.allowed_words)
        return Answered(
            answers=msgspec.structs.replace(Answers(), **{name: cleaned.answer}),
            removals=tuple(
                msgspec.structs.replace(removal, field=f"{name}.{removal.field}")
                for removal in cleaned.removals
            ),
            model=f"{answer.provider}/{answer.model}",
            is_simulated=answer.is_simulated,
        )

    async def _business(self, request: AnalysisRequest) -> Business:
        if request.business_profile_id is None:
            return UNDESCRIBED
        found = await self.businesses.find(request.account_id, request.business_profile_id)
        if found is None:
            raise BusinessGone(str(request.business_profile_id))
        return found


def _comparisons(read: ReadProfile, business: Business) -> int:
    customer = business.ideal_customer
    terms = (*customer.niches, *customer.content_themes, *customer.geographies, *customer.exclusions)
    letters = sum(len(post.caption) + sum(map(len, post.hashtags)) for post in read.profile.posts)
    return letters * (1 + len(terms))


def _scrape(read: ReadProfile, analysis_type: AnalysisType) -> Scrape:
    return Scrape(
        outcome="ok",
        profile=read.profile,
        posts_asked=POSTS_NEEDED[analysis_type],
        scraped_at=read.scraped_at,
        provider=read.provider,
        is_simulated=read.is_simulated,
    )
