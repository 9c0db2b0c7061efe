from infrastructure.database.leads import PostgresResults
from tests.features.analysis.examples import LEAD_KEY, analysis, changed

NEW_PROFILE = """
insert into public.business_profiles (account_id, id, name, created_by)
values ($1, gen_random_uuid(), 'Alpine Coffee', 'user:x')
"""
NEW_MODEL_CALL = """
insert into public.ai_usage_logs (
    id, created_at, call_id, attempt, account_id, run_id, provider, model, task, outcome, tokens_in,
    tokens_cached, tokens_cache_written, tokens_out, tokens_reasoning, is_estimated, cost_nanodollars,
    latency_ms, cache, is_simulated
)
values (gen_random_uuid(), now(), gen_random_uuid(), 1, $1, $2, 'openai', 'gpt-5-mini', 'light', 'answered',
    10, 0, 0, 5, 0, false, 12500, 900, 'none', true)
"""
NEW_SCRAPE = """
insert into public.scrape_logs (
    id, created_at, account_id, run_id, provider, username, outcome, posts_asked, posts_found,
    cost_nanodollars, is_estimated, duration_ms, is_simulated
)
values (gen_random_uuid(), now(), $1, $2, 'apify', 'natgeo', 'ok', 12, 12, 3000000, true, 8000, true)
"""
ANY_PROFILE = "select id from public.business_profiles where account_id = $1 limit 1"


async def new_analysis(owner, account_id, **fields):
    """A light one, of a lead of a business that the account has; and the lead's id."""
    business_id = await owner.fetchval(ANY_PROFILE, account_id)
    made = analysis(changed(LEAD_KEY, account_id=account_id, business_profile_id=business_id, **fields))
    return made, (await PostgresResults(owner).save(made)).lead_id
