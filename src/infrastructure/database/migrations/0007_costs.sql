-- Costs of work: provider prices, every call that a provider charges for, and the cache that avoids paying twice. The
-- service role alone: costs and margins are not shown to tenants.

-- Prices ------------------------------------------------------------------------------------------

-- Loaded from prices.json by oslira migrate. An operator inserts negotiated prices as rows with a later
-- effective_from.
create table public.token_prices (
    provider text not null check (length(provider) between 1 and 100),
    model text not null check (length(model) between 1 and 200),
    effective_from timestamptz not null,
    tokens_in_above bigint not null default 0 check (tokens_in_above >= 0),
    -- Nanodollars per million tokens.
    input_nanodollars bigint not null check (input_nanodollars >= 0),
    cached_input_nanodollars bigint not null check (cached_input_nanodollars >= 0),
    cache_write_nanodollars bigint not null check (cache_write_nanodollars >= 0),
    output_nanodollars bigint not null check (output_nanodollars >= 0),
    source text not null default '',
    primary key (provider, model, effective_from, tokens_in_above)
);

create table public.unit_prices (
    provider text not null check (length(provider) between 1 and 100),
    unit text not null check (length(unit) between 1 and 100),
    effective_from timestamptz not null,
    nanodollars bigint not null check (nanodollars >= 0),
    source text not null default '',
    primary key (provider, unit, effective_from)
);

-- Provider calls ----------------------------------------------------------------------------------

-- No checks: the money is already spent, and a row that violates one would be lost. Without an account: spent
-- for the system itself or for an anonymous analysis.
create table public.ai_usage_logs (
    id uuid primary key,
    created_at timestamptz not null,
    call_id uuid not null,
    attempt integer not null,
    account_id uuid references public.accounts (id) on delete cascade,
    user_id uuid,
    run_id uuid,
    provider text not null,
    model text not null,
    task text not null,
    outcome text not null,
    tokens_in bigint not null,
    tokens_cached bigint not null,
    tokens_cache_written bigint not null,
    tokens_out bigint not null,
    tokens_reasoning bigint not null,
    is_estimated boolean not null,
    cost_nanodollars bigint,  -- null: no price was known
    latency_ms double precision not null,
    cache text not null,
    is_simulated boolean not null,
    error text,
    gateway_log_id text
);

create index ai_usage_logs_by_time on public.ai_usage_logs (created_at);
create index ai_usage_logs_by_account on public.ai_usage_logs (account_id, created_at desc);
create index ai_usage_logs_by_run on public.ai_usage_logs (run_id) where run_id is not null;
create index ai_usage_logs_unpriced on public.ai_usage_logs (created_at) where cost_nanodollars is null;

create table public.scrape_logs (
    id uuid primary key,
    created_at timestamptz not null,
    account_id uuid references public.accounts (id) on delete cascade,
    user_id uuid,
    run_id uuid,
    provider text not null,
    username text not null,
    outcome text not null,
    posts_asked integer not null,
    posts_found integer not null,
    cost_nanodollars bigint,  -- null: no price was known
    is_estimated boolean not null,
    duration_ms double precision not null,
    is_simulated boolean not null,
    provider_run_id text
);

create index scrape_logs_by_time on public.scrape_logs (created_at);
create index scrape_logs_by_account on public.scrape_logs (account_id, created_at desc);
create index scrape_logs_by_run on public.scrape_logs (run_id) where run_id is not null;
create index scrape_logs_unpriced on public.scrape_logs (created_at) where cost_nanodollars is null;

-- Cached completions ------------------------------------------------------------------------------

-- The same prompt of the same account within a day is not paid for twice. Tenants read their analyses, never this
-- table.
create table public.completion_cache (
    account_id uuid not null references public.accounts (id) on delete cascade,
    completion_key bytea not null check (octet_length(completion_key) = 32),
    completion bytea not null check (octet_length(completion) <= 1048576),
    is_compressed boolean not null,  -- zstd
    provider text not null check (length(provider) <= 100),
    model text not null check (length(model) <= 200),
    is_simulated boolean not null,
    created_at timestamptz not null default statement_timestamp(),
    expires_at timestamptz not null,
    primary key (account_id, completion_key)
);

create index completion_cache_by_expiry on public.completion_cache (expires_at);

call private.protect_table('public.token_prices', 'select, insert, update, delete');
call private.protect_table('public.unit_prices', 'select, insert, update, delete');
call private.protect_table('public.ai_usage_logs', 'select, insert, update, delete');
call private.protect_table('public.scrape_logs', 'select, insert, update, delete');
call private.protect_table('public.completion_cache', 'select, insert, update, delete');
