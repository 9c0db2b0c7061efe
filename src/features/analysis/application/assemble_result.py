"""Pure assembly of an analysis from a fetched profile and its completions.

The same input gives the same analysis at any time, because a resumed run computes it again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from features.analysis.application.profile_reader import ReadProfile
from features.analysis.domain.analysis import NO_BUSINESS, Analysis, LeadKey, ModelOutputs
from features.analysis.domain.profile.facts import Facts, facts_of
from features.analysis.domain.prompting.evidence import evidence_of
from features.analysis.domain.prompting.excerpts import Excerpt, excerpt_of
from features.analysis.domain.prompting.model_outputs import Judgement, ModelOutput
from features.analysis.domain.prompting.output_sanitizer import Removal, allowed_words
from features.analysis.domain.prompting.prompts import prompts_for
from features.analysis.domain.scoring.icp_match import IcpMatch, fit_of
from features.analysis.domain.scoring.ideal_customer import Business
from features.analysis.domain.scoring.scoring import Score, score_of
from shared.ids import AccountId, AnalysisType, BusinessProfileId, RunId, UserId
from shared.llm import CostOwner, StructuredPrompt


class AnalysisRequest(msgspec.Struct, frozen=True, kw_only=True):
    """``business_profile_id`` is None in an anonymous run, which has no described business."""

    run_id: RunId
    account_id: AccountId
    user_id: UserId | None
    username: str
    analysis_type: AnalysisType
    business_profile_id: BusinessProfileId | None
    is_fresh: bool

    @property
    def cost_owner(self) -> CostOwner:
        return CostOwner(account_id=self.account_id, user_id=self.user_id, run_id=self.run_id)


class CompletedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    answers: ModelOutputs  # only the output of this prompt is set
    removals: tuple[Removal, ...]
    model: str  # provider/model
    is_simulated: bool


@dataclass(frozen=True, slots=True)
class AnalysisInput:
    """Profile data prepared for prompts and scores. Not stored: a resumed run computes it again."""

    request: AnalysisRequest
    read: ReadProfile
    facts: Facts
    fit: IcpMatch
    excerpt: Excerpt
    prompts: dict[str, StructuredPrompt[ModelOutput]]
    allowed_words: frozenset[str]


def prepare(request: AnalysisRequest, read: ReadProfile, business: Business) -> AnalysisInput:
    facts = facts_of(read.profile, read.scraped_at)
    fit = fit_of(read.profile, business.ideal_customer)
    excerpt = excerpt_of(request.analysis_type, read.profile, facts, fit)
    return AnalysisInput(
        request=request,
        read=read,
        facts=facts,
        fit=fit,
        excerpt=excerpt,
        prompts=prompts_for(request.analysis_type, business, facts, fit, excerpt, request.cost_owner),
        allowed_words=allowed_words(business.prompt_prefix, request.username),
    )


def assemble(prepared: AnalysisInput, completed: Iterable[CompletedPrompt]) -> Analysis:
    completed = tuple(completed)
    request, read = prepared.request, prepared.read
    answers = _merged(completed)
    judgement = _judgement(answers)
    score = _score(prepared, answers, judgement)
    return Analysis(
        id=request.run_id,
        key=LeadKey(
            account_id=request.account_id,
            business_profile_id=request.business_profile_id or NO_BUSINESS,
            username=request.username,
        ),
        analysis_type=request.analysis_type,
        profile=msgspec.structs.replace(read.profile, posts=()),
        facts=prepared.facts,
        fit=prepared.fit,
        score=score,
        niche=judgement.niche,
        answers=answers,
        evidence=evidence_of(read.profile, prepared.excerpt.post_ids, answers, score),
        removals=tuple(removal for prompt in completed for removal in prompt.removals),
        models=tuple(dict.fromkeys(prompt.model for prompt in completed)),
        scraped_at=read.scraped_at,
        is_cached=read.is_cached,
        is_simulated=read.is_simulated or any(prompt.is_simulated for prompt in completed),
        user_id=request.user_id,
    )


def _merged(completed: Iterable[CompletedPrompt]) -> ModelOutputs:
    outputs = {
        name: output
        for prompt in completed
        for name in ModelOutputs.__struct_fields__
        if (output := getattr(prompt.answers, name)) is not None
    }
    return ModelOutputs(**outputs)


def _judgement(answers: ModelOutputs) -> Judgement:
    judgement = answers.light or answers.core or answers.commercial
    assert judgement is not None, "every analysis type has a prompt for a judgement"
    return judgement


def _score(prepared: AnalysisInput, answers: ModelOutputs, judgement: Judgement) -> Score:
    return score_of(
        prepared.request.analysis_type,
        prepared.facts,
        prepared.fit,
        judgement=judgement,
        psychographic=answers.psychographic,
        post_ids=prepared.excerpt.post_ids,
    )
