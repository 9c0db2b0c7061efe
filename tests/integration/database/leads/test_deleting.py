"""A lead is hidden with its analyses, and comes back with them."""

import asyncio

import pytest

from features.leads.domain.errors import LeadAlreadyExists
from shared.ids import LeadId
from tests.integration.database.leads.reads import as_lead, history, lead_history, listed, names, rows_of
from tests.unit.features.analysis.examples import analysis


async def test_a_deleted_lead_takes_its_analyses_along_and_brings_them_back(
    results, leads, analyses, tenant, key
):
    made = analysis(key)
    lead_id = LeadId((await results.save(made)).lead_id)

    assert await leads.delete(tenant.caller, lead_id)
    assert not await leads.delete(tenant.caller, lead_id)
    assert await leads.get(tenant.caller, lead_id) is None
    assert await analyses.get(tenant.caller, made.id) is None
    assert (await lead_history(leads, tenant, lead_id), await history(analyses, tenant)) == (None, [])
    assert (await names(leads, tenant), await names(leads, tenant, is_deleted=True)) == ([], ["ana.bakes"])

    restored = await leads.restore(tenant.caller, lead_id)

    assert (restored.version, restored.deleted_at) == (3, None)
    assert await leads.restore(tenant.caller, lead_id) == restored
    assert as_lead(await leads.get(tenant.caller, lead_id)) == restored
    assert await lead_history(leads, tenant, lead_id) == [made.id]


async def test_who_is_analysed_after_a_deletion_is_a_new_lead_in_the_olds_place(results, leads, tenant, key):
    old = LeadId((await results.save(analysis(key))).lead_id)
    await leads.delete(tenant.caller, old)

    saved = await results.save(analysis(key))

    assert (saved.is_new, saved.lead_id == old) == (True, False)
    with pytest.raises(LeadAlreadyExists, match=r"@ana\.bakes"):
        await leads.restore(tenant.caller, old)
    assert await leads.delete(tenant.caller, LeadId(saved.lead_id))
    assert (await leads.restore(tenant.caller, old)).id == old


async def test_a_deletion_beside_saves_leaves_no_analysis_behind(results, leads, owner, tenant, key):
    lead_id = LeadId((await results.save(analysis(key))).lead_id)

    await asyncio.gather(
        *(results.save(analysis(key)) for _ in range(6)),
        leads.delete(tenant.caller, lead_id),
        *(results.save(analysis(key)) for _ in range(6)),
    )

    hidden = await owner.fetch(
        """
        select distinct (a.deleted_at is null) = (l.deleted_at is null) as agrees
        from analyses as a join leads as l on l.account_id = a.account_id and l.id = a.lead_id
        where a.account_id = $1
        """,
        tenant.account_id,
    )
    assert [row["agrees"] for row in hidden] == [True]
    assert len(await rows_of(owner, "analyses", tenant)) == 13
    assert len(await listed(leads, tenant)) <= 1


async def test_a_lead_goes_with_its_business(results, owner, tenant, key):
    await results.save(analysis(key))

    await owner.execute("delete from business_profiles where account_id = $1", tenant.account_id)

    assert await rows_of(owner, "leads", tenant) == await rows_of(owner, "analyses", tenant) == []
