"""Texts of simulated analyses, for the prompts that the application really sends."""

import re
from datetime import UTC, datetime

import msgspec
import pytest

from core.cli.client.businesses import EXAMPLE
from features.analysis.domain.profile.facts import facts_of
from features.analysis.domain.prompting.excerpts import excerpt_of
from features.analysis.domain.prompting.output_sanitizer import allowed_words, clean_answer
from features.analysis.domain.prompting.prompts import prompts_for
from features.analysis.domain.scoring.icp_match import fit_of
from features.analysis.domain.scoring.ideal_customer import UNDESCRIBED, Business, IdealCustomer
from features.business.domain.profile import ProfileContent
from features.business.domain.prompt import prompt_prefix
from infrastructure.scraping.apify_mapping import read_profile
from shared.llm import CostOwner
from simulators.ai.completions import Completions
from simulators.instagram.captions import HOSTILE
from simulators.instagram.instagram_items import profile_item

NOW = datetime(2026, 3, 4, 15, tzinfo=UTC)
CUSTOMER = {name: tuple(terms) for name, terms in EXAMPLE["ideal_customer"].items()}
BUSINESS = Business(
    prompt_prefix=prompt_prefix(msgspec.convert(EXAMPLE, ProfileContent)),
    ideal_customer=IdealCustomer(**CUSTOMER),
)
KINDS = ("slow.kitchen", "ada.lovely", "hostile.one", "nonlatin.one", "empty.one", "sparse.one", "huge_one")


def completions(username, analysis_type, business=BUSINESS):
    """Typed outputs by name."""
    profile = read_profile([profile_item(username, 50, NOW)], username, now=NOW).profile
    facts, fit = facts_of(profile, NOW), fit_of(profile, business.ideal_customer)
    excerpt = excerpt_of(analysis_type, profile, facts, fit)
    prompts = prompts_for(analysis_type, business, facts, fit, excerpt, CostOwner())
    outputs = {}
    for name, prompt in prompts.items():
        (schema,), parts = msgspec.json.schema_components([prompt.output_type], ref_template="#/$defs/{name}")
        value = Completions(prompt.cached_prefix, prompt.user_message).value({**schema, "$defs": parts})
        outputs[name] = msgspec.convert(value, prompt.output_type)
    return outputs


def texts_of(outputs):
    return re.findall(r'"((?:[^"\\]|\\.)*)"', msgspec.json.encode(outputs).decode())


@pytest.mark.parametrize("username", KINDS)
@pytest.mark.parametrize("business", [BUSINESS, UNDESCRIBED], ids=["described", "undescribed"])
@pytest.mark.parametrize("analysis_type", ["light", "deep", "xray"])
def test_no_text_is_generic_or_repeats_an_injected_order(username, business, analysis_type):
    outputs = completions(username, analysis_type, business)

    text = " ".join(texts_of(outputs))
    assert "imulated" not in text
    assert not re.search(r"[a-z] [a-z]+: \d", text)  # the sentence for schemas that have no draft
    assert not any(line in text for order in HOSTILE for line in order.splitlines() if line)
    allowed = allowed_words(business.prompt_prefix, username)
    assert not [removal for output in outputs.values() for removal in clean_answer(output, allowed).removals]


def test_messages_name_a_post_the_offer_and_end_with_a_question():
    captions = [post["caption"] for post in profile_item("slow.kitchen", 50, NOW)["latestPosts"]]

    messages = completions("slow.kitchen", "deep")["outreach"].messages

    assert [message.channel for message in messages] == ["direct_message", "email", "comment"]
    for message in messages:
        quote = re.search("“(.+)”", message.opening)[1]
        assert any(caption.startswith(quote) for caption in captions)
        assert "?" in message.message
    assert "a box with three recipes a month" in messages[0].message
    assert messages[1].subject == "Seasonal Table and your posts on seasonal home cooking"


@pytest.mark.parametrize("username", KINDS)
def test_scores_agree_with_the_reasons(username):
    core = completions(username, "deep")["core"]

    about_niche = [reason for reason in core.reasons if "Seasonal Table" in reason.text]
    about_rate = [reason for reason in core.reasons if "typical post gets reactions" in reason.text]
    assert {reason.effect for reason in about_niche} <= {"for" if core.niche_fit >= 50 else "against"}
    assert {reason.effect for reason in about_rate} <= {"for" if core.engagement_quality >= 50 else "against"}
    assert core.reasons[0].effect == ("for" if core.overall >= 50 else "against")


def test_facts_are_those_of_the_profile():
    item = profile_item("slow.kitchen", 50, NOW)

    core = completions("slow.kitchen", "deep")["core"]

    assert f"{item['followersCount']:,} followers" in core.summary
    assert core.summary.startswith("Home cook who posts about twice a week on seasonal home cooking")


def test_matching_profile_scores_higher_than_another():
    matching, other = (completions(name, "deep")["core"] for name in ("slow.kitchen", "ada.lovely"))

    assert matching.overall >= 80
    assert other.overall < 60
