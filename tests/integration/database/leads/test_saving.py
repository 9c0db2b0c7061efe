"""Saving of results: one lead per profile and business, in any order of the analyses."""

import asyncio
import contextvars
import uuid
from datetime import timedelta

import pytest

from shared.ids import LeadId
from tests.integration.database.leads.reads import lead_history, listed, new_key, rows_of
from tests.support import NOON, until
from tests.unit.features.analysis.examples import analysis, days_before, profile

WAITING = """
select count(*) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and query like '%leads.save%'
"""


async def test_a_saved_analysis_makes_a_lead_and_is_read_back_whole(results, leads, analyses, tenant, key):
    made = analysis(key, "deep", of=profile(external_urls=("https://a.example",), is_verified=True))

    saved = await results.save(made)

    known = await leads.get(tenant.caller, LeadId(saved.lead_id))
    assert saved.is_new
    assert (await analyses.get(tenant.caller, made.id)).analysis == made
    assert (known.business_profile_id, known.platform) == (key.business_profile_id, key.platform)
    assert (known.username, known.version, known.comparison) == (key.username, 1, None)
    assert (known.full_name, known.followers, known.external_urls) == (
        "Ana Novak",
        12_000,
        ("https://a.example",),
    )
    assert (known.score, known.tier) == (made.score.total, made.score.tier)
    assert (known.last_analysis_id, known.last_analysis_type) == (made.id, "deep")
    assert known.created_at == known.last_analysed_at == known.latest_analysis.created_at
    assert (known.latest_analysis.id, known.latest_analysis.lead_id, known.latest_analysis.niche_fit) == (
        made.id,
        saved.lead_id,
        made.score.niche_fit,
    )


@pytest.mark.parametrize("analysis_type", ["light", "deep", "xray"])
async def test_every_type_is_kept_as_it_was(results, analyses, tenant, key, analysis_type):
    made = analysis(key, analysis_type, of=profile(biography="Zoë 🥖\n\u202etxt"), user_id=uuid.uuid4())

    saved = await results.save(made)

    kept = await analyses.get(tenant.caller, made.id)
    assert (kept.analysis, kept.lead_id) == (made, saved.lead_id)


async def test_a_later_analysis_brings_the_lead_up_to_date(results, leads, tenant, key):
    first = analysis(key, at=days_before(30))
    second = analysis(key, "deep", of=profile(full_name="Ana N.", followers_count=15_000), overall=100)

    made = await results.save(first)
    again = await results.save(second)

    known = await leads.get(tenant.caller, LeadId(made.lead_id))
    assert (made.is_new, again.is_new, again.lead_id) == (True, False, made.lead_id)
    assert (known.full_name, known.followers, known.version) == ("Ana N.", 15_000, 2)
    assert (known.last_analysis_id, known.scraped_at) == (second.id, NOON)
    assert known.created_at < known.last_analysed_at == known.updated_at
    assert (known.comparison.days_between, known.comparison.followers_delta) == (30, 3_000)
    assert known.comparison.score_delta == second.score.total - first.score.total
    assert await lead_history(leads, tenant, made.lead_id) == [second.id, first.id]


async def test_an_older_look_that_is_saved_later_changes_the_history_alone(results, leads, tenant, key):
    newer, older = analysis(key), analysis(key, of=profile(followers_count=9_000), at=days_before(10))

    lead_id = (await results.save(newer)).lead_id
    assert not (await results.save(older)).is_new

    known = await leads.get(tenant.caller, LeadId(lead_id))
    assert (known.last_analysis_id, known.followers, known.scraped_at) == (
        newer.id,
        12_000,
        NOON,
    )
    assert known.version == 2  # the analysis changed, so that there is a comparison
    assert (known.comparison.days_between, known.comparison.followers_delta) == (10, 3_000)
    assert await lead_history(leads, tenant, lead_id) == [older.id, newer.id]


async def test_the_comparison_is_to_the_look_before_the_last(results, leads, tenant, key):
    for days, followers in ((1, 11_000), (90, 5_000), (0, 12_000), (30, 8_000)):
        made = analysis(key, of=profile(followers_count=followers), at=days_before(days))
        lead_id = (await results.save(made)).lead_id

    known = await leads.get(tenant.caller, LeadId(lead_id))
    assert (known.comparison.days_between, known.comparison.followers_delta) == (1, 1_000)


async def test_of_two_analyses_of_one_look_the_later_counts(results, leads, tenant, key):
    await results.save(analysis(key))
    second = analysis(key, "deep")
    lead_id = (await results.save(second)).lead_id

    known = await leads.get(tenant.caller, LeadId(lead_id))
    assert known.last_analysis_id == second.id
    assert (known.comparison.days_between, known.comparison.is_same_type) == (0, False)


async def test_a_repeated_save_gives_the_same_answer_and_changes_nothing(results, owner, tenant, key):
    first, second = analysis(key, at=days_before(1)), analysis(key)
    answers = [await results.save(made) for made in (first, second)]
    before = [await rows_of(owner, table, tenant) for table in ("leads", "analyses")]

    assert [await results.save(made) for made in (first, second)] == answers
    assert [await rows_of(owner, table, tenant) for table in ("leads", "analyses")] == before


async def test_a_repeated_save_after_a_deletion_makes_no_new_lead(results, leads, owner, tenant, key):
    made = analysis(key)
    saved = await results.save(made)
    await leads.delete(tenant.caller, LeadId(saved.lead_id))

    assert await results.save(made) == saved
    assert len(await rows_of(owner, "leads", tenant)) == 1


async def test_sixteen_at_once_make_one_lead_with_sixteen_analyses(results, leads, tenant, key):
    made = [analysis(key, at=NOON - timedelta(minutes=number)) for number in range(16)]

    saved = await asyncio.gather(*(results.save(one) for one in reversed(made)))

    (lead,) = await listed(leads, tenant)
    assert {one.lead_id for one in saved} == {lead.id}
    assert [one.is_new for one in saved].count(True) == 1
    assert (lead.last_analysis_id, lead.version) == (made[0].id, 16)
    assert set(await lead_history(leads, tenant, lead.id)) == {one.id for one in made}


async def test_a_save_waits_for_the_same_one_that_is_under_way(results, leads, database, owner, tenant, key):
    made = analysis(key)
    async with database.admin("tests").transaction():
        first = await results.save(made)
        # In a context of its own, or it would join this transaction.
        twin = asyncio.create_task(results.save(made), context=contextvars.Context())
        await until(lambda: owner.fetchval(WAITING))

    assert await twin == first
    assert [lead.version for lead in await listed(leads, tenant)] == [1]
    assert len(await rows_of(owner, "analyses", tenant)) == 1


async def test_a_save_goes_with_the_transaction_it_is_part_of(results, database, owner, tenant, key):
    with pytest.raises(RuntimeError):
        async with database.admin("tests").transaction():
            await results.save(analysis(key))
            raise RuntimeError

    assert await rows_of(owner, "leads", tenant) == await rows_of(owner, "analyses", tenant) == []


async def test_one_person_is_another_lead_for_another_business(results, owner, tenant, key):
    other = await new_key(owner, tenant)

    saved = [await results.save(analysis(one)) for one in (key, other)]

    assert [one.is_new for one in saved] == [True, True]
    assert saved[0].lead_id != saved[1].lead_id
