"""Requested analyses: stored subject, accepted bulk rows, duration estimates and anonymous results."""

from uuid import UUID

import msgspec
import pytest

from features.analysis.domain.anonymous import anonymous_result
from features.analysis.domain.bulk import checked
from features.analysis.domain.estimates import eta_s
from features.analysis.domain.requests import NewAnalysis, NewBulkAnalysis
from shared.ids import BusinessProfileId
from tests.unit.features.analysis.examples import LIGHT, analysis, profile

BUSINESS_ID = BusinessProfileId(UUID(int=7))
BULK = NewBulkAnalysis(analysis_type="xray", business_profile_id=BUSINESS_ID, is_fresh=True, count=2)


def test_request_is_stored_as_the_subject_of_its_run():
    order = BULK.of("ann")

    assert order.subject == {
        "username": "ann",
        "type": "xray",
        "business_profile_id": str(BUSINESS_ID),
        "is_fresh": True,
    }
    assert msgspec.convert(order.subject, NewAnalysis) == order
    assert msgspec.convert(BULK.subject, NewBulkAnalysis) == BULK
    assert (order.kind, order.dedup_key) == ("xray_analysis", f"analysis:xray:{BUSINESS_ID}:ann")


def test_request_without_a_business_is_anonymous():
    order = NewAnalysis(username="ann", analysis_type="light", business_profile_id=None)

    assert (order.kind, order.subject["business_profile_id"]) == ("anonymous_analysis", None)


def test_rows_keep_their_positions_and_duplicates_are_rejected():
    rows = checked(["b", "@a", "!", "https://instagram.com/A", "a" * 31])

    assert rows.usernames == ((1, "b"), (2, "a"))
    assert [(one.position, one.code) for one in rows.rejections] == [
        (3, "username_invalid"),
        (4, "duplicate_in_list"),
        (5, "username_invalid"),
    ]


@pytest.mark.parametrize("text", ["\0", "\x1b[2J", "\u202e", "a\nb", "x" * 300, "\ud800"])
def test_rejection_is_printable_and_bounded(text):
    (rejection,) = checked([text]).rejections

    assert rejection.text.isprintable()
    assert len(rejection.text) <= 100
    assert rejection.reason.isprintable()
    assert len(rejection.reason) <= 500


def test_cached_profile_shortens_the_estimate():
    assert all(
        eta_s(name, (), is_cached=True) < eta_s(name, (), is_cached=False)
        for name in ("light", "deep", "xray")
    )


def test_anonymous_result_is_a_part_of_the_analysis():
    made = analysis(of=profile())

    result = anonymous_result(made)

    assert (result.score, result.tier, result.username) == (made.score.total, made.score.tier, "ana.bakes")
    assert [reason.text for reason in result.reasons] == [reason.text for reason in LIGHT.reasons]
    assert result.facts.followers == 12_000
    assert msgspec.json.decode(msgspec.json.encode(result), type=type(result)) == result


@pytest.mark.parametrize(("is_cached", "seconds"), [(False, 12), (True, 4)])
def test_estimate_is_the_sum_of_measured_steps(is_cached, seconds):
    measured = (("scrape", 8.2), ("core", 3.0), ("outreach", 0.6))

    assert eta_s("deep", measured, is_cached=is_cached) == seconds


def test_estimate_is_at_least_one_second():
    assert eta_s("light", (("scrape", 0.1), ("light", 0.0)), is_cached=True) == 1
