import uuid

from features.analysis.application.ports import AnalysisFilter
from features.analysis.domain.analysis import LeadKey
from features.leads.application.ports import LeadFilter
from features.leads.domain.leads import Lead


async def new_key(owner, tenant):
    business_id = uuid.uuid4()
    await owner.execute(
        "insert into business_profiles (account_id, id, name, created_by) values ($1, $2, 'B', 'user:x')",
        *(tenant.account_id, business_id),
    )
    return LeadKey(account_id=tenant.account_id, business_profile_id=business_id, username="ana.bakes")


async def rows_of(owner, table, tenant):
    return await owner.fetch(f"select * from {table} where account_id = $1", tenant.account_id)


async def listed(leads, tenant, sort="username", after=None, leads_max=200, **only):
    return await leads.list(tenant.caller, LeadFilter(**only), sort=sort, after=after, leads_max=leads_max)


async def names(*args, **options):
    return [lead.username for lead in await listed(*args, **options)]


async def history(analyses, tenant, **only):
    found = await analyses.list(tenant.caller, AnalysisFilter(**only), after=None, analyses_max=200)
    return [entry.id for entry in found]


async def lead_history(leads, tenant, lead_id):
    found = await leads.history(tenant.caller, lead_id, after=None, analyses_max=200)
    return None if found is None else [entry.id for entry in found]


def as_lead(details):
    """The lead without its latest analysis and comparison."""
    return Lead(**{name: getattr(details, name) for name in Lead.__struct_fields__})
