"""Steps of an analysis and the assembled result."""

# ruff: noqa: ARG002  the parameters are the ports'

import asyncio
from uuid import UUID

import msgspec
import pytest

from features.analysis.application import steps as steps_module
from features.analysis.application.assemble_result import AnalysisRequest, assemble
from features.analysis.application.profile_reader import ProfileReader
from features.analysis.application.steps import AnalysisSteps
from features.analysis.domain.analysis import NO_BUSINESS, Analysis
from features.analysis.domain.errors import BusinessDeleted
from features.analysis.domain.scoring.ideal_customer import UNDESCRIBED, IdealCustomer
from shared.ids import AccountId, BusinessProfileId, RunId
from shared.llm import Completion, Usage
from tests.fakes.analysis import FakeKnown, FakeRecord
from tests.support import NOON
from tests.unit.features.analysis.examples import BUSINESS, LIGHT, profile, scrape

BUSINESS_ID = BusinessProfileId(UUID(int=7))


class Source:
    def __init__(self, found):
        self.found = found

    async def fetch(self, username, *, posts_max, cost_owner):
        return self.found


class Businesses:
    def __init__(self, business):
        self.business = business

    async def find(self, account_id, business_profile_id):
        return self.business if business_profile_id == BUSINESS_ID else None


class Analyst:
    def __init__(self, value):
        self.value = value

    async def complete(self, prompt):
        return Completion(
            value=self.value,
            provider="openai",
            model="gpt",
            is_simulated=True,
            cache="none",
            usage=Usage(),
            cost_nanodollars=1,
            latency_ms=1.0,
        )


def request(**fields):
    usual = {
        "run_id": RunId(UUID(int=1)),
        "account_id": AccountId(UUID(int=2)),
        "user_id": None,
        "username": "ana.bakes",
        "analysis_type": "light",
        "business_profile_id": BUSINESS_ID,
        "is_fresh": False,
    }
    return AnalysisRequest(**usual | fields)


def make_steps(*, found=None, business=BUSINESS, value=LIGHT):
    profiles = ProfileReader(Source(found or scrape()), FakeKnown(), FakeRecord(), lambda: NOON)
    return AnalysisSteps(profiles, Analyst(value), Businesses(business))


async def concluded(steps, asked):
    subject = await steps.prepare(asked, await steps.fetch_profile(asked))
    return assemble(subject, [await steps.complete("light", subject)])


@pytest.mark.parametrize("outcome", ["private", "not_found", "restricted"])
async def test_inaccessible_profile_is_a_result(outcome):
    scraped = await make_steps(found=scrape(outcome=outcome, profile=None)).fetch_profile(request())

    assert (scraped.eligibility.outcome, scraped.read) == (outcome, None)


async def test_ineligible_profile_is_a_result_with_its_violations():
    business = msgspec.structs.replace(BUSINESS, ideal_customer=IdealCustomer(followers_min=1_000_000))

    scraped = await make_steps(business=business).fetch_profile(request())

    assert (scraped.eligibility.outcome, scraped.read) == ("icp_violation", None)
    assert [violation.name for violation in scraped.eligibility.violations] == ["followers_below_min"]


async def test_deleted_business_is_an_error():
    with pytest.raises(BusinessDeleted):
        await make_steps().fetch_profile(request(business_profile_id=BusinessProfileId(UUID(int=8))))


async def test_request_without_a_business_uses_the_undescribed_one():
    scraped = await make_steps().fetch_profile(request(business_profile_id=None))

    assert scraped.business == UNDESCRIBED


async def test_step_results_survive_serialization():
    steps = make_steps()
    scraped = await steps.fetch_profile(request())
    completed = await steps.complete("light", await steps.prepare(request(), scraped))

    for value in (scraped, completed):
        kept = msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(value)))
        assert msgspec.convert(kept, type(value)) == value


async def test_analysis_contains_profile_outputs_and_score():
    analysis = await concluded(make_steps(), request())

    assert (analysis.id, analysis.key.business_profile_id) == (RunId(UUID(int=1)), BUSINESS_ID)
    assert (analysis.profile.username, analysis.profile.posts) == ("ana.bakes", ())
    assert analysis.niche == LIGHT.niche
    assert analysis.answers.light == LIGHT
    assert analysis.models == ("openai/gpt",)
    assert (analysis.scraped_at, analysis.is_cached, analysis.is_simulated) == (NOON, False, True)
    assert msgspec.json.decode(msgspec.json.encode(analysis), type=Analysis) == analysis


async def test_anonymous_analysis_has_no_business():
    analysis = await concluded(make_steps(), request(business_profile_id=None))

    assert analysis.key.business_profile_id == NO_BUSINESS


async def test_cited_posts_are_evidence_once_and_in_order():
    reason = LIGHT.reasons[0]
    said = msgspec.structs.replace(
        LIGHT,
        reasons=(
            msgspec.structs.replace(reason, evidence=("[P3]", "p99")),
            msgspec.structs.replace(reason, evidence=("p1", "p3")),
        ),
    )

    analysis = await concluded(make_steps(value=said), request())

    posts = profile().posts
    assert [(post.label, post.id) for post in analysis.evidence] == [("p1", posts[0].id), ("p3", posts[2].id)]


async def test_removal_names_its_output():
    said = msgspec.structs.replace(LIGHT, summary="Visit evil.example now.")

    analysis = await concluded(make_steps(value=said), request())

    assert [removal.field for removal in analysis.removals] == ["light.summary"]
    assert "evil" not in analysis.answers.light.summary


async def test_large_profile_is_compared_in_a_thread(monkeypatch):
    threads = []

    async def to_thread(call, *args):
        threads.append(call)
        return call(*args)

    monkeypatch.setattr(asyncio, "to_thread", to_thread)
    steps = make_steps()
    scraped = await steps.fetch_profile(request())

    await steps.prepare(request(), scraped)
    assert not threads
    monkeypatch.setattr(steps_module, "COMPARISONS_MAX", 0)
    await steps.prepare(request(), scraped)
    assert len(threads) == 1
