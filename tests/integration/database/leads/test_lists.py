"""Leads and analyses as their account sees them."""

import uuid

import pytest

from features.analysis.application.ports import AnalysisFilter
from features.leads.application.ports import LeadFilter
from features.leads.domain.leads import SORTS
from infrastructure.database.leads.leads import LISTS
from shared.caller import AccountNotChosen, AccountNotFound
from shared.ids import LeadId, RunId
from shared.pagination import SortedCursor
from tests.integration.database.leads.reads import history, lead_history, listed, names
from tests.unit.features.analysis.examples import analysis, changed, days_before


async def test_a_list_is_sorted_as_asked_and_cut_anywhere_without_gap_or_repetition(leads, tenant, four):
    for sort in SORTS:
        whole = await listed(leads, tenant, sort)
        values = [lead.sorted_by(sort) for lead in whole]
        assert values == sorted(values, reverse=sort.startswith("-"))
        assert {lead.username for lead in whole} == set(four)
        for cut, lead in enumerate(whole, start=1):
            after = SortedCursor(lead.sorted_by(sort), lead.id)
            assert await listed(leads, tenant, sort, after) == whole[cut:]


async def test_the_newest_come_first(leads, tenant, four):
    assert await names(leads, tenant, "-last_analysed_at") == four[::-1]


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize(
    ("only", "found"),
    [
        ({}, ["ana.bakes", "ben", "cleo_", "dora"]),
        ({"niche": "coffee"}, ["ana.bakes", "ben"]),
        ({"niche": "bread"}, ["cleo_"]),
        ({"niche": "brea"}, []),
        ({"analysis_type": "deep"}, ["ben"]),
        ({"words": "ANA"}, ["ana.bakes", "ben"]),
        ({"words": "äö"}, ["ben"]),
        ({"words": "a.b"}, ["ana.bakes"]),
        ({"words": "100%"}, ["dora"]),
        ({"words": "%"}, ["dora"]),
        ({"words": "_"}, ["cleo_"]),
        ({"words": "ana", "niche": "Coffee", "analysis_type": "light"}, ["ana.bakes"]),
        ({"words": "' or true --"}, []),
        ({"business_profile_id": uuid.UUID(int=7)}, []),
    ],
    ids=str,
)
async def test_a_list_holds_what_fits_the_filter(leads, tenant, only, found):
    assert await names(leads, tenant, **only) == found


@pytest.mark.usefixtures("four")
async def test_a_list_is_bounded_by_score_and_tier(leads, tenant):
    all_leads = await listed(leads, tenant)
    scores = sorted(lead.score for lead in all_leads)
    low, high = scores[1], scores[2]

    for only, is_in in (
        ({"score_min": high}, lambda lead: lead.score >= high),
        ({"score_max": low}, lambda lead: lead.score <= low),
        ({"score_min": low, "score_max": low}, lambda lead: lead.score == low),
        ({"tiers": ("hot", "warm")}, lambda lead: lead.tier in ("hot", "warm")),
        ({"tiers": ("cool",)}, lambda lead: lead.tier == "cool"),
    ):
        assert await listed(leads, tenant, **only) == [lead for lead in all_leads if is_in(lead)]
    assert len({lead.tier for lead in all_leads}) > 1


async def test_a_list_of_one_business(leads, tenant, four, key):
    assert await names(leads, tenant, business_profile_id=key.business_profile_id) == sorted(
        set(four) - {"cleo_"}
    )


async def test_analyses_are_listed_by_lead_business_and_type(leads, analyses, tenant, four, key):
    all_leads = {lead.username: lead for lead in await listed(leads, tenant)}
    ids = [all_leads[name].last_analysis_id for name in four]

    assert await history(analyses, tenant) == ids[::-1]
    assert await history(analyses, tenant, lead_id=all_leads["ben"].id) == [ids[1]]
    assert await lead_history(leads, tenant, all_leads["ben"].id) == [ids[1]]
    assert await history(analyses, tenant, analysis_type="deep") == [ids[1]]
    business = key.business_profile_id
    assert await history(analyses, tenant, business_profile_id=business) == ids[2::-1]
    assert await history(analyses, tenant, lead_id=all_leads["ben"].id, analysis_type="light") == []
    assert await lead_history(leads, tenant, LeadId(uuid.uuid4())) is None


async def test_lists_of_analyses_go_back_as_far_as_the_plan_does(
    results, leads, analyses, owner, tenant, key
):
    old, recent = analysis(key, at=days_before(40)), analysis(key)
    for made in (old, recent):
        lead_id = LeadId((await results.save(made)).lead_id)
    await owner.execute("update analyses set created_at = now() - interval '31 days' where id = $1", old.id)

    assert await history(analyses, tenant) == [recent.id]
    assert await lead_history(leads, tenant, lead_id) == [recent.id]
    assert (await analyses.get(tenant.caller, old.id)).analysis == old
    assert (await leads.get(tenant.caller, lead_id)).comparison.days_between == 40

    await owner.execute("update accounts set plan = 'growth' where id = $1", tenant.account_id)
    assert await history(analyses, tenant) == [recent.id, old.id]


async def test_an_account_that_is_not_the_callers_is_not_there(
    results, leads, analyses, tenant, other_tenant, key
):
    made = analysis(key)
    lead_id = LeadId((await results.save(made)).lead_id)
    stranger = changed(other_tenant.caller, chosen_account=tenant.account_id)
    anonymous = changed(tenant.caller, claims='{"role": "anon"}')

    for caller, refusal in ((stranger, AccountNotFound), (anonymous, AccountNotChosen)):
        for asked in (
            leads.list(caller, LeadFilter(), sort="score", after=None, leads_max=9),
            leads.get(caller, lead_id),
            leads.delete(caller, lead_id),
            leads.restore(caller, lead_id),
            analyses.list(caller, AnalysisFilter(), after=None, analyses_max=9),
            analyses.get(caller, made.id),
        ):
            with pytest.raises(refusal):
                await asked
    caller = other_tenant.caller
    assert await leads.get(caller, lead_id) is await leads.restore(caller, lead_id) is None
    assert not await leads.delete(caller, lead_id)
    assert await analyses.get(caller, RunId(made.id)) is None
    assert (await leads.get(tenant.caller, lead_id)).version == 1


@pytest.mark.parametrize("sort", ["-last_analysed_at", "-score", "score", "username"])
async def test_a_page_of_many_reads_no_more_than_a_page(owner, results, tenant, key, sort):
    await results.save(analysis(key))
    columns = await owner.fetchval(
        "select string_agg(attname, ', ') from pg_attribute where attrelid = 'leads'::regclass and attnum > 0"
        " and attname not in ('id', 'username', 'score', 'last_analysed_at')"
    )
    transaction = owner.transaction()
    await transaction.start()
    await owner.execute(
        f"""
        insert into leads (id, username, score, last_analysed_at, {columns})
        select gen_random_uuid(), 'n' || n, n % 100, now() - n * interval '1 minute', {columns}
        from leads, generate_series(1, 5000) as n where account_id = $1
        """,
        tenant.account_id,
    )
    await owner.execute("analyze leads")
    before = await reads(owner)
    await owner.execute("select set_config('request.jwt.claims', $1, true)", tenant.claims)
    await owner.execute("set local role app_user")
    found = await owner.fetch(LISTS[sort], tenant.account_id, *[None] * 10, 50)
    await owner.execute("reset role")
    after = await reads(owner)
    await transaction.rollback()

    assert len(found) == 50
    assert [now - then for then, now in zip(before, after, strict=True)] <= [0, 60]


async def reads(owner):
    """Rows of the table that this transaction has read one after another, and by an index."""
    row = await owner.fetchrow(
        "select seq_tup_read, idx_tup_fetch from pg_stat_xact_user_tables where relname = 'leads'"
    )
    return list(row)
