import uuid

from infrastructure.database.leads.leads import PostgresAnalysisResults
from tests.unit.features.analysis.examples import LEAD_KEY, analysis, changed

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
    """Returns a light analysis of a lead of the account's business, and the lead's id."""
    business_id = await owner.fetchval(ANY_PROFILE, account_id)
    made = analysis(changed(LEAD_KEY, account_id=account_id, business_profile_id=business_id, **fields))
    return made, (await PostgresAnalysisResults(owner).save(made)).lead_id


NEW_SUBSCRIPTION = """
select * from billing.apply_subscription(
    $1, $2, 'si_1', 'growth', 'active', now(), now(), now() + interval '1 month', null, null,
    clock_timestamp(), true)
"""
NEW_EVENT = """
insert into public.webhook_events (stripe_event_id, account_id, type, created_at, payload)
values ('evt_' || replace(gen_random_uuid()::text, '-', ''), $1, 'invoice.paid', now(), '{}')
"""
NEW_PURCHASE = """
with customer as (insert into public.billing_customers values ($1, 'cus_' || $2)),
invoice as (
    insert into public.invoices (
        account_id, stripe_invoice_id, status, due_cents, paid_cents, currency, created_at, seen_at)
    values ($1, 'in_' || $2, 'paid', 2900, 2900, 'usd', now(), now())
)
insert into public.checkouts (account_id, id, pack, credits, price_cents, currency)
values ($1, $3, 'small', 100, 1500, 'usd')
"""


async def new_subscription(owner, account_id):
    """A paid plan with its first period, and a purchased pack of which half was refunded."""
    key, checkout_id = uuid.uuid4().hex, uuid.uuid4()
    await owner.execute(NEW_SUBSCRIPTION, account_id, f"sub_{key}")
    await owner.execute(NEW_PURCHASE, account_id, key, checkout_id)
    await owner.execute(
        "select billing.complete_purchase($1, $2, $3, $4, 100, 1500, 'usd')",
        *(account_id, checkout_id, f"cs_{key}", f"pi_{key}"),
    )
    await owner.execute("select billing.reverse_payment($1, $2, 750)", f"pi_{key}", f"re_{key}")


NEW_ENDPOINT = """
select webhooks.add_endpoint($1, $2, $3, $3, $4, null, 'user:x', 10)
"""
NEW_ATTEMPT = """
insert into public.webhook_attempts (account_id, delivery_id, number, http_status, duration_ms)
select account_id, id, 1, 500, 10 from public.webhook_deliveries where account_id = $1
"""


async def new_endpoint(owner, account_id, url="https://hooks.example", types=()):
    endpoint_id = uuid.uuid4()
    await owner.execute(NEW_ENDPOINT, account_id, endpoint_id, url, types)
    return endpoint_id


async def new_delivery(owner, account_id):
    """Returns a delivery to its own endpoint, after one attempt."""
    await new_endpoint(owner, account_id)
    await owner.execute("select webhooks.enqueue($1, 'batch.completed', '{}')", account_id)
    await owner.execute(NEW_ATTEMPT, account_id)
