-- What work costs us: what providers charge, every call that somebody charges for, and data points. The
-- service's alone: costs and margins are ours, not the tenants'.

-- Prices ------------------------------------------------------------------------------------------

-- Loaded from prices.json by oslira migrate. Negotiated prices are rows that an operator inserts, with an
-- effective_from of their own.
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

-- Calls -------------------------------------------------------------------------------------------

-- No checks on what is written down: the money is spent already, and a row that is refused is lost. No
-- account: spent for the system itself, or for an anonymous visitor.
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

-- Data points -------------------------------------------------------------------------------------

-- kind says what the texts and the numbers are: see infrastructure/database/data_points.py.
create table traffic.data_points (
    at timestamptz not null,
    kind text not null,
    account_id uuid,
    user_id uuid,
    blobs text[] not null,
    doubles double precision[] not null
);

create index data_points_by_time on traffic.data_points using brin (at);
create index data_points_by_kind on traffic.data_points (kind, at);
create index data_points_by_account on traffic.data_points (account_id, at) where account_id is not null;

-- Every refused request is classified by its problem's code.
alter table traffic.requests add column code text;

-- Who may do what ---------------------------------------------------------------------------------

alter table public.token_prices enable row level security;
alter table public.token_prices force row level security;
alter table public.unit_prices enable row level security;
alter table public.unit_prices force row level security;
alter table public.ai_usage_logs enable row level security;
alter table public.ai_usage_logs force row level security;
alter table public.scrape_logs enable row level security;
alter table public.scrape_logs force row level security;
alter table traffic.data_points enable row level security;
alter table traffic.data_points force row level security;

revoke all on
    public.token_prices, public.unit_prices, public.ai_usage_logs, public.scrape_logs, traffic.data_points
from public, anon, authenticated, service_role;
grant select, insert, update, delete on
    public.token_prices, public.unit_prices, public.ai_usage_logs, public.scrape_logs, traffic.data_points
to service_role;
