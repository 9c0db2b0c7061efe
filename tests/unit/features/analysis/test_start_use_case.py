"""Starts of single, bulk and anonymous analyses, and stored analyses, with fakes behind their ports."""

import hashlib
import uuid
from datetime import timedelta

import pytest
from msgspec.structs import replace

from features.analysis.application.analyses import Analyses
from features.analysis.application.anonymous import AnonymousAnalyses
from features.analysis.application.ports import AnalysisFilter, RunPayer
from features.analysis.application.start_analysis import StartAnalysis
from features.analysis.application.start_bulk import BulkRows, StartBulk
from features.analysis.domain.analysis import AnalysisEntry
from features.analysis.domain.bulk import BulkPage, PageItem
from features.analysis.domain.errors import (
    AnalysisNotFound,
    AnonymousAnalysisNotFound,
    BulkAnalysisNotFound,
    BulkTooLarge,
    KeyCannotSpend,
    NothingToAnalyse,
    UsernameInvalid,
)
from features.analysis.domain.requests import NewAnalysis, NewBulkAnalysis
from shared.caller import Caller
from shared.pagination import CursorInvalid
from tests.fakes.analysis_runs import (
    PRICES,
    FakeAccountState,
    FakeAnalysisStore,
    FakeAnonymousResults,
    FakeBulkReader,
    FakeRuns,
)
from tests.support import NOON

ACCOUNT, USER, KEY, BUSINESS, RUN = (uuid.UUID(int=number) for number in range(1, 6))
CALLER = Caller(id=USER, claims="{}", chosen_account=ACCOUNT)
LIVE_KEY = Caller(kind="api_key", id=KEY, claims="{}", chosen_account=ACCOUNT)
TEST_KEY = replace(LIVE_KEY, is_test=True)
ORDER = NewAnalysis(username="natgeo", analysis_type="deep", business_profile_id=BUSINESS)


def rows(*usernames, analysis_type="xray"):
    return BulkRows(
        analysis_type=analysis_type, business_profile_id=BUSINESS, is_fresh=True, usernames=usernames
    )


@pytest.fixture
def runs():
    return FakeRuns()


@pytest.fixture
def account():
    return FakeAccountState()


@pytest.fixture
def starts(runs, account):
    return StartAnalysis(runs, account)


@pytest.fixture
def reader():
    return FakeBulkReader()


@pytest.fixture
def bulk(runs, account, reader):
    return StartBulk(runs, account, account, reader)


@pytest.fixture
def results():
    return FakeAnonymousResults()


@pytest.fixture
def store():
    return FakeAnalysisStore()


@pytest.mark.parametrize("analysis_type", ["light", "deep", "xray"])
async def test_price_of_the_analysis_type_is_held(starts, runs, analysis_type):
    order = replace(ORDER, analysis_type=analysis_type)

    started = await starts.start(CALLER, RUN, order)

    assert started.credits_held == PRICES[analysis_type]
    assert runs.started == {RUN: (RunPayer(account_id=ACCOUNT, user_id=USER), order, PRICES[analysis_type])}


async def test_repeated_start_with_a_run_id_returns_the_first_run(starts, runs):
    first, again = [await starts.start(CALLER, RUN, ORDER) for _ in range(2)]

    assert first == again
    assert list(runs.started) == [RUN]


async def test_api_key_pays_as_a_key_and_not_as_a_user(starts, bulk, runs):
    await starts.start(LIVE_KEY, RUN, ORDER)
    await bulk.start(LIVE_KEY, KEY, rows("natgeo"))

    payers = [arguments[0] for arguments in runs.started.values()]
    assert payers == [RunPayer(account_id=ACCOUNT, api_key_id=KEY)] * 2


async def test_test_key_starts_nothing_and_gets_a_report(starts, bulk, runs):
    with pytest.raises(KeyCannotSpend):
        await starts.start(TEST_KEY, RUN, ORDER)
    with pytest.raises(KeyCannotSpend):
        await bulk.start(TEST_KEY, RUN, rows("natgeo"))

    assert (await bulk.report(TEST_KEY, rows("natgeo"))).credits_estimate == 6
    assert runs.started == {}


async def test_bulk_starts_with_its_valid_rows_and_reports_the_others(bulk, runs):
    started, report = await bulk.start(CALLER, RUN, rows("natgeo", "no name", "@NASA", "NatGeo"))

    order = NewBulkAnalysis(analysis_type="xray", business_profile_id=BUSINESS, is_fresh=True, count=2)
    payer = RunPayer(account_id=ACCOUNT, user_id=USER)
    assert runs.started == {RUN: (payer, order, report.rows, 6)}
    assert report.rows.usernames == ((1, "natgeo"), (3, "nasa"))
    assert [(row.position, row.code) for row in report.rows.rejections] == [
        (2, "username_invalid"),
        (4, "duplicate_in_list"),
    ]
    assert (started.run_id, report.credits_estimate, report.credits_available) == (RUN, 12, 25)


async def test_report_equals_that_of_the_start_and_starts_nothing(bulk, runs):
    report = await bulk.report(CALLER, rows("natgeo", "no name"))

    assert runs.started == {}
    assert (await bulk.start(CALLER, RUN, rows("natgeo", "no name")))[1] == report


async def test_plan_limits_the_number_of_sent_rows(bulk, runs):
    with pytest.raises(BulkTooLarge) as error:
        await bulk.start(CALLER, RUN, rows("a", "b", "c", "d", "no name"))

    assert (error.value.code, error.value.facts) == ("bulk_too_large", {"limit": 4, "plan": "pro"})
    assert runs.started == {}
    assert (await bulk.report(CALLER, rows("a", "b", "c", "d"))).order.count == 4


async def test_bulk_without_a_valid_row_starts_nothing(bulk, runs):
    with pytest.raises(NothingToAnalyse) as error:
        await bulk.start(CALLER, RUN, rows("no name", ""))

    assert error.value.code == "nothing_to_analyse"
    assert (error.value.facts["rejected_count"], error.value.facts["first_code"]) == (2, "username_invalid")
    assert runs.started == {}


async def test_items_of_a_bulk_are_paged_by_position(bulk, reader):
    items = [
        PageItem(position=position, username=f"name{position}", run_id=None, status="waiting", outcome=None)
        for position in (1, 3, 4)
    ]
    order = NewBulkAnalysis(analysis_type="light", business_profile_id=BUSINESS, count=3)
    reader.pages[RUN] = BulkPage(
        run_id=RUN,
        status="queued",
        progress=0,
        current_step=None,
        order=order,
        created_at=NOON,
        ended_at=None,
        counts={"waiting": 3},
        items=items,
        rejections=[],
    )

    first, cursor = await bulk.page(CALLER, RUN, cursor=None, limit=2)
    second, end = await bulk.page(CALLER, RUN, cursor=cursor, limit=2)

    assert (first.items, second.items, end) == (items[:2], items[2:], None)


async def test_unknown_bulk_or_cursor_is_rejected(bulk):
    with pytest.raises(BulkAnalysisNotFound):
        await bulk.page(CALLER, RUN, cursor=None, limit=2)
    with pytest.raises(CursorInvalid):
        await bulk.page(CALLER, RUN, cursor="70", limit=2)


async def test_anonymous_analysis_is_light_and_stored_with_the_hash_of_its_token(results):
    started, token = await AnonymousAnalyses(results).start("https://instagram.com/NatGeo")

    order = NewAnalysis(username="natgeo", analysis_type="light", business_profile_id=None)
    assert results.started == {hashlib.sha256(token.encode()).digest(): (started.run_id, order)}
    assert len(token) == 43


async def test_equal_anonymous_requests_get_different_tokens(results):
    tokens = {(await AnonymousAnalyses(results).start("natgeo"))[1] for _ in range(2)}

    assert len(tokens) == 2


async def test_anonymous_analysis_of_an_invalid_username_is_rejected(results):
    with pytest.raises(UsernameInvalid):
        await AnonymousAnalyses(results).start("no name")

    assert results.started == {}


@pytest.mark.parametrize("token", ["x" * 43, "", "\ud800"], ids=ascii)
async def test_only_the_token_opens_an_anonymous_analysis(results, token):
    anonymous = AnonymousAnalyses(results)
    _, issued = await anonymous.start("natgeo")

    assert (await anonymous.get(issued)).status == "queued"
    with pytest.raises(AnonymousAnalysisNotFound):
        await anonymous.get(token)


async def test_stored_analyses_are_filtered_and_paged_newest_first(store):
    store.entries = [entry(number) for number in (1, 2, 3)]
    only = AnalysisFilter(analysis_type="deep")

    first = await Analyses(store).page(CALLER, only, cursor=None, limit=2)
    second = await Analyses(store).page(CALLER, only, cursor=first.next_cursor, limit=2)

    assert [[one.id.int for one in page.items] for page in (first, second)] == [[3, 2], [1]]
    assert (second.next_cursor, store.filters) == (None, [only, only])


async def test_unknown_analysis_is_not_found(store):
    store.by_id[RUN] = "stored"

    assert await Analyses(store).get(CALLER, RUN) == "stored"
    with pytest.raises(AnalysisNotFound):
        await Analyses(store).get(CALLER, KEY)


def entry(number):
    return AnalysisEntry(
        id=uuid.UUID(int=number),
        lead_id=uuid.UUID(int=10),
        business_profile_id=BUSINESS,
        username="natgeo",
        analysis_type="deep",
        status="completed",
        score=70,
        tier="warm",
        niche_fit=70,
        engagement=60,
        confidence=90,
        niche="nature",
        is_cached=False,
        is_simulated=True,
        user_id=USER,
        scraped_at=NOON,
        created_at=NOON + timedelta(seconds=number),
    )
