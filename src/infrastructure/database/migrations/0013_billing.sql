-- Credit packs, prices, subscriptions and payments, and the inbox of Stripe's events. Stripe says what was paid;
-- however often its events reach us, a period's credits are granted once: each grant has the period's own reference.

create schema billing;
grant usage on schema billing to service_role;

-- Products ----------------------------------------------------------------------------------------

-- Credits that are bought once and do not expire.
create table public.credit_packs (
    name text primary key check (name ~ '^[a-z][a-z_]{0,39}$'),
    title text not null check (length(title) between 1 and 100),
    credits bigint not null check (credits between 1 and 1000000000),
    price_cents integer not null check (price_cents > 0),
    currency text not null default 'usd' check (currency ~ '^[a-z]{3}$'),
    is_offered boolean not null default true
);

insert into public.credit_packs (name, title, credits, price_cents) values
    ('small', '100 credits', 100, 1500),
    ('medium', '500 credits', 500, 5900),
    ('large', '2,000 credits', 2000, 19900);

-- Stripe's current and former prices of our products: a subscription keeps the price it was started at.
create table public.billing_prices (
    stripe_price_id text primary key check (length(stripe_price_id) between 1 and 255),
    plan text references public.plans (name) on delete cascade,
    pack text references public.credit_packs (name) on delete cascade,
    price_cents integer not null check (price_cents >= 0),
    currency text not null check (currency ~ '^[a-z]{3}$'),
    created_at timestamptz not null default clock_timestamp(),
    check (num_nonnulls(plan, pack) = 1)
);

create index billing_prices_by_plan on public.billing_prices (plan, created_at desc) where plan is not null;
create index billing_prices_by_pack on public.billing_prices (pack, created_at desc) where pack is not null;

-- Customers and subscriptions ---------------------------------------------------------------------

create table public.billing_customers (
    account_id uuid primary key references public.accounts (id) on delete cascade,
    stripe_customer_id text not null unique check (length(stripe_customer_id) between 1 and 255),
    created_at timestamptz not null default clock_timestamp()
);

-- clock: the system that determines when a period ends. 'stripe': Stripe bills it. 'internal': period n begins n
-- months after the anchor. Every account has one internal subscription for good, which is ended while it has one
-- at Stripe.
create table public.subscriptions (
    account_id uuid not null references public.accounts (id) on delete cascade,
    id uuid not null default gen_random_uuid(),
    plan text not null references public.plans (name),
    status text not null check (status in ('active', 'trialing', 'past_due', 'unpaid', 'paused', 'ended')),
    clock text not null check (clock in ('internal', 'stripe')),
    renews boolean not null default true,  -- false: its periods grant no credits
    stripe_subscription_id text unique check (length(stripe_subscription_id) between 1 and 255),
    stripe_item_id text check (length(stripe_item_id) between 1 and 255),
    anchor_at timestamptz not null,
    period_index integer not null default 0 check (period_index >= 0),  -- of the internal clock
    period_start timestamptz not null,
    period_end timestamptz not null check (period_end > period_start),
    next_plan text references public.plans (name),  -- from the period's end on
    cancels_at timestamptz,
    seen_at timestamptz not null,  -- the time of this state; an older state changes nothing
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    primary key (account_id, id),
    check ((clock = 'stripe') = (stripe_subscription_id is not null)),
    check ((status = 'ended') = (ended_at is not null))
) with (fillfactor = 80);

create unique index subscriptions_active on public.subscriptions (account_id) where ended_at is null;
create unique index subscriptions_internal on public.subscriptions (account_id) where clock = 'internal';
create index subscriptions_due on public.subscriptions (clock, period_end) where ended_at is null;
create index subscriptions_by_age on public.subscriptions (account_id, created_at desc, id desc);

-- The credits that a period has granted. An upgrade within a period adds the difference.
create table public.subscription_periods (
    account_id uuid not null,
    subscription_id uuid not null,
    period_start timestamptz not null,
    period_end timestamptz not null,
    plan text not null references public.plans (name),  -- the largest plan that was paid for
    credits_granted bigint not null check (credits_granted >= 0),
    granted_at timestamptz not null default clock_timestamp(),
    primary key (account_id, subscription_id, period_start),
    foreign key (account_id, subscription_id)
        references public.subscriptions (account_id, id) on delete cascade
);

-- Checkouts, invoices and payments ----------------------------------------------------------------

-- Purchases for which a Stripe checkout session was opened.
create table public.checkouts (
    account_id uuid not null references public.accounts (id) on delete cascade,
    id uuid not null,
    user_id uuid,
    plan text references public.plans (name),
    pack text references public.credit_packs (name),
    credits bigint not null check (credits >= 0),  -- promised when it was opened
    price_cents integer not null check (price_cents >= 0),
    currency text not null check (currency ~ '^[a-z]{3}$'),
    status text not null default 'opening'
        check (status in ('opening', 'open', 'completed', 'expired', 'failed')),
    stripe_session_id text unique check (length(stripe_session_id) between 1 and 255),
    url text check (length(url) <= 4000),
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz,
    completed_at timestamptz,
    -- Stored, so that a repeated request asks Stripe for the same session.
    success_url text not null default '' check (length(success_url) <= 2000),
    cancel_url text not null default '' check (length(cancel_url) <= 2000),
    primary key (account_id, id),
    check (num_nonnulls(plan, pack) = 1),
    check ((status = 'completed') = (completed_at is not null))
);

create index checkouts_by_age on public.checkouts (account_id, created_at desc, id desc);
create index checkouts_unfinished on public.checkouts (account_id, created_at desc)
    where plan is not null and status in ('opening', 'open');

create table public.invoices (
    account_id uuid not null references public.accounts (id) on delete cascade,
    stripe_invoice_id text not null unique check (length(stripe_invoice_id) between 1 and 255),
    stripe_subscription_id text check (length(stripe_subscription_id) between 1 and 255),
    number text check (length(number) <= 100),
    status text not null check (status in ('draft', 'open', 'paid', 'uncollectible', 'void')),
    billing_reason text check (length(billing_reason) <= 100),
    due_cents bigint not null,
    paid_cents bigint not null,
    currency text not null check (currency ~ '^[a-z]{3}$'),
    period_start timestamptz,
    period_end timestamptz,
    hosted_url text check (length(hosted_url) <= 4000),
    pdf_url text check (length(pdf_url) <= 4000),
    created_at timestamptz not null,
    paid_at timestamptz,
    seen_at timestamptz not null,
    id uuid not null default gen_random_uuid(),  -- for pages, which are ordered by time and id
    stripe_payment_id text check (length(stripe_payment_id) between 1 and 255),
    primary key (account_id, stripe_invoice_id)
);

create index invoices_by_age on public.invoices (account_id, created_at desc, id desc);

-- The credits that a payment bought, so that returned money takes them back.
create table public.payments (
    account_id uuid not null references public.accounts (id) on delete cascade,
    stripe_payment_id text not null unique check (length(stripe_payment_id) between 1 and 255),
    grant_reference text not null check (length(grant_reference) between 1 and 200),
    credits bigint not null check (credits >= 0),
    paid_cents bigint not null check (paid_cents > 0),
    currency text not null check (currency ~ '^[a-z]{3}$'),
    returned_cents bigint not null default 0 check (returned_cents >= 0),
    credits_reclaimed bigint not null default 0 check (credits_reclaimed >= 0),
    credits_short bigint not null default 0 check (credits_short >= 0),  -- not available: a debt
    created_at timestamptz not null default clock_timestamp(),
    primary key (account_id, stripe_payment_id)
);

-- One row per refund or dispute, so that each takes effect once.
create table public.payment_reversals (
    account_id uuid not null,
    stripe_payment_id text not null,
    reference text not null check (length(reference) between 1 and 200),  -- Stripe's id of the refund or dispute
    returned_cents bigint not null check (returned_cents > 0),
    credits_reclaimed bigint not null check (credits_reclaimed >= 0),
    credits_short bigint not null check (credits_short >= 0),
    created_at timestamptz not null default clock_timestamp(),
    undone_at timestamptz,  -- the dispute was won, or the refund failed
    primary key (account_id, reference),
    foreign key (account_id, stripe_payment_id)
        references public.payments (account_id, stripe_payment_id) on delete cascade
);

create index payment_reversals_by_payment on public.payment_reversals (account_id, stripe_payment_id);
create index payment_reversals_by_reference on public.payment_reversals (reference);

-- Inbox -------------------------------------------------------------------------------------------

create table public.webhook_events (
    stripe_event_id text primary key check (length(stripe_event_id) between 1 and 255),
    position bigint generated by default as identity unique,  -- order of arrival
    -- The account concerned, set when the event is applied. The event outlives the account.
    account_id uuid references public.accounts (id) on delete set null,
    type text not null check (length(type) between 1 and 255),
    api_version text check (length(api_version) <= 100),
    created_at timestamptz not null,  -- by Stripe
    received_at timestamptz not null default clock_timestamp(),
    payload bytea not null,
    -- parked: waits for something that another event creates, an account for example
    status text not null default 'pending'
        check (status in ('pending', 'parked', 'applied', 'ignored', 'dead')),
    -- Time of the next attempt; while the event is claimed, the time at which the claim expires.
    due_at timestamptz not null default clock_timestamp(),
    claimed_by uuid,
    attempts integer not null default 0 check (attempts >= 0),
    failures integer not null default 0 check (failures >= 0),  -- attempts that count against it
    replays integer not null default 0 check (replays >= 0),
    last_error text check (length(last_error) <= 100),
    applied_at timestamptz,
    effects jsonb not null default '[]' check (jsonb_typeof(effects) = 'array'),
    check ((status in ('applied', 'ignored')) = (applied_at is not null))
) with (fillfactor = 70);

-- Compression would take longer than the rest of the insert. PostgreSQL 15 has no storage clause in a create.
alter table public.webhook_events alter column payload set storage external;

create index webhook_events_due on public.webhook_events (due_at) where status in ('pending', 'parked');
create index webhook_events_stuck on public.webhook_events (status, position)
    where status in ('parked', 'dead');
create index webhook_events_by_account on public.webhook_events (account_id, position)
    where account_id is not null;
create index webhook_events_by_time on public.webhook_events using brin (created_at);

-- Privileges --------------------------------------------------------------------------------------

call private.protect_table('public.credit_packs', 'select, insert, update, delete');
call private.protect_table('public.billing_prices', 'select, insert, update, delete');
call private.protect_table('public.billing_customers', 'select, insert, update', 'select');
call private.protect_table('public.subscriptions', 'select', 'select');
call private.protect_table('public.subscription_periods', 'select', 'select');
call private.protect_table('public.checkouts', 'select, insert, update', 'select');
call private.protect_table('public.invoices', 'select, insert, update', 'select');
call private.protect_table('public.payments', 'select', 'select');
call private.protect_table('public.payment_reversals', 'select', 'select');
call private.protect_table('public.webhook_events', 'select, insert, update');
