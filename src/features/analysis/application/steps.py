"""Steps of an analysis. The engine checkpoints their results, so no step is paid for twice."""

import asyncio
from dataclasses import dataclass

import msgspec

from features.analysis.application.assemble_result import (
    AnalysisInput,
    AnalysisRequest,
    CompletedPrompt,
    prepare,
)
from features.analysis.application.ports import Businesses, CompletionProvider
from features.analysis.application.profile_reader import INACCESSIBLE, ProfileReader, ReadProfile
from features.analysis.domain.analysis import ModelOutputs
from features.analysis.domain.eligibility import CheckOutcome, Eligibility, check_eligibility
from features.analysis.domain.errors import (
    BusinessDeleted,
    ProfileIsPrivate,
    ProfileNotFound,
    ProfileRestricted,
)
from features.analysis.domain.profile.profile import POSTS_NEEDED, Scrape
from features.analysis.domain.prompting.output_sanitizer import clean_answer
from features.analysis.domain.scoring.ideal_customer import UNDESCRIBED, Business
from shared.ids import AnalysisType

# Letters times search terms. Above this number the comparison runs in a thread, to keep the event loop free.
COMPARISONS_MAX = 500_000
OUTCOMES: dict[type[Exception], CheckOutcome] = {error: outcome for outcome, error in INACCESSIBLE.items()}


class ScrapedProfile(msgspec.Struct, frozen=True, kw_only=True):
    """``read`` is set when the profile is eligible. ``business`` is a snapshot from the same moment."""

    eligibility: Eligibility
    business: Business
    read: ReadProfile | None = None


@dataclass(frozen=True, slots=True)
class AnalysisSteps:
    profiles: ProfileReader
    completions: CompletionProvider
    businesses: Businesses

    async def fetch_profile(self, request: AnalysisRequest) -> ScrapedProfile:
        """An inaccessible or ineligible profile is a result, not an error. Raises BusinessDeleted and
        ProfilesUnavailable.
        """
        business = await self._business(request)
        try:
            read = await self.profiles.read(
                request.username,
                request.analysis_type,
                cost_owner=request.cost_owner,
                is_bypassed=request.is_fresh,
            )
        except (ProfileIsPrivate, ProfileNotFound, ProfileRestricted) as error:
            return ScrapedProfile(eligibility=Eligibility(outcome=OUTCOMES[type(error)]), business=business)
        eligibility = check_eligibility(_scrape(read, request.analysis_type), business.ideal_customer)
        return ScrapedProfile(
            eligibility=eligibility, business=business, read=read if eligibility.outcome == "ok" else None
        )

    async def prepare(self, request: AnalysisRequest, scraped: ScrapedProfile) -> AnalysisInput:
        assert scraped.read is not None, "an ineligible profile is not analysed"
        if _comparisons(scraped.read, scraped.business) > COMPARISONS_MAX:
            return await asyncio.to_thread(prepare, request, scraped.read, scraped.business)
        return prepare(request, scraped.read, scraped.business)

    async def complete(self, name: str, prepared: AnalysisInput) -> CompletedPrompt:
        """Raises ModelsUnavailable, CompletionMalformed, CompletionRefused and PromptRejected."""
        completion = await self.completions.complete(prepared.prompts[name])
        cleaned = clean_answer(completion.value, prepared.allowed_words)
        return CompletedPrompt(
            answers=msgspec.structs.replace(ModelOutputs(), **{name: cleaned.answer}),
            removals=tuple(
                msgspec.structs.replace(removal, field=f"{name}.{removal.field}")
                for removal in cleaned.removals
            ),
            model=f"{completion.provider}/{completion.model}",
            is_simulated=completion.is_simulated,
        )

    async def _business(self, request: AnalysisRequest) -> Business:
        if request.business_profile_id is None:
            return UNDESCRIBED
        found = await self.businesses.find(request.account_id, request.business_profile_id)
        if found is None:
            raise BusinessDeleted(business_profile_id=str(request.business_profile_id))
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
