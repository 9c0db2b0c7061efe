-- Money in. What is sold, who has which plan until when, and what was paid for. Stripe says what was paid;
-- whichever way its word reaches us, and however often, a period's credits are granted once: each grant has
-- the period's own key, in the transaction that notes it.

create schema billing;
grant usage on schema billing to service_role;

-- What is sold ------------------------------------------------------------------------------------

alter table public.plans
    add column title text not null default '' check (length(title) <= 100),
    add column rank smallint unique,  -- which of two plans is the larger one; null: not offered
    add column monthly_credits bigint not null default 0
        check (monthly_credits between 0 and 1000000000),
    add column price_cents integer not null default 0 check (price_cents >= 0),  -- a month; 0: not sold
    add column currency text not null default 'usd' check (currency ~ '^[a-z]{3}$');

update public.plans as p
set title = v.title, rank = v.rank, monthly_credits = v.monthly_credits, price_cents = v.price_cents
from (values
    ('free', 'Free', 0, 10, 0),
    ('growth', 'Growth', 1, 250, 2900),
    ('pro', 'Pro', 2, 1500, 9900),
    ('agency', 'Agency', 3, 5000, 29900),
    ('enterprise', 'Enterprise', 4, 20000, 99900)
) as v (name, title, rank, monthly_credits, price_cents)
where p.name = v.name;

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

-- Stripe's prices for what we sell, now or once: who subscribed at an old price keeps it.
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

-- Who has what ------------------------------------------------------------------------------------

create table public.billing_customers (
    account_id uuid primary key references public.accounts (id) on delete cascade,
    stripe_customer_id text not null unique check (length(stripe_customer_id) between 1 and 255),
    created_at timestamptz not null default clock_timestamp()
);

-- clock: who says when a period ends. Where Stripe bills, Stripe; else the anchor: period n begins n months
-- after it. An account has one of our own clock for good, which rests while Stripe's is there.
create table public.subscriptions (
    account_id uuid not null references public.accounts (id) on delete cascade,
    id uuid not null default gen_random_uuid(),
    plan text not null references public.plans (name),
    status text not null check (status in ('active', 'trialing', 'past_due', 'unpaid', 'paused', 'ended')),
    clock text not null check (clock in ('own', 'stripe')),
    renews boolean not null default true,  -- false: its periods bring no credits
    stripe_subscription_id text unique check (length(stripe_subscription_id) between 1 and 255),
    stripe_item_id text check (length(stripe_item_id) between 1 and 255),
    anchor_at timestamptz not null,
    period_index integer not null default 0 check (period_index >= 0),  -- of our own clock
    period_start timestamptz not null,
    period_end timestamptz not null check (period_end > period_start),
    next_plan text references public.plans (name),  -- from the period's end on
    cancels_at timestamptz,
    seen_at timestamptz not null,  -- when this was so; what is older changes nothing
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    primary key (account_id, id),
    check ((clock = 'stripe') = (stripe_subscription_id is not null)),
    check ((status = 'ended') = (ended_at is not null))
) with (fillfactor = 80);

create unique index subscriptions_active on public.subscriptions (account_id) where ended_at is null;
create unique index subscriptions_own on public.subscriptions (account_id) where clock = 'own';
create index subscriptions_due on public.subscriptions (clock, period_end) where ended_at is null;
create index subscriptions_by_age on public.subscriptions (account_id, created_at desc, id desc);

-- What a period has brought. An upgrade within one brings the difference.
create table public.subscription_periods (
    account_id uuid not null,
    subscription_id uuid not null,
    period_start timestamptz not null,
    period_end timestamptz not null,
    plan text not null references public.plans (name),  -- the largest one that was paid for
    credits_granted bigint not null check (credits_granted >= 0),
    granted_at timestamptz not null default clock_timestamp(),
    primary key (account_id, subscription_id, period_start),
    foreign key (account_id, subscription_id)
        references public.subscriptions (account_id, id) on delete cascade
);

-- What somebody was sent to Stripe's till for.
create table public.checkouts (
    account_id uuid not null references public.accounts (id) on delete cascade,
    id uuid not null,
    user_id uuid,
    plan text references public.plans (name),
    pack text references public.credit_packs (name),
    credits bigint not null check (credits >= 0),  -- as promised when it was opened
    price_cents integer not null check (price_cents >= 0),
    currency text not null check (currency ~ '^[a-z]{3}$'),
    status text not null default 'opening'
        check (status in ('opening', 'open', 'completed', 'expired', 'failed')),
    stripe_session_id text unique check (length(stripe_session_id) between 1 and 255),
    url text check (length(url) <= 4000),
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz,
    completed_at timestamptz,
    primary key (account_id, id),
    check (num_nonnulls(plan, pack) = 1),
    check ((status = 'completed') = (completed_at is not null))
);

create index checkouts_by_age on public.checkouts (account_id, created_at desc, id desc);

create table public.invoices (
    account_id uuid not null references public.accounts (id) on delete cascade,
    stripe_invoice_id text not null unique check (length(stripe_invoice_id) between 1 and 255),
    stripe_subscription_id text check (length(stripe_subscription_id) between 1 and 255),
    number text check (length(number) <= 100),
    status text not null check (status in ('draft', 'open', 'paid', 'uncollectible', 'void')),
    billing_reason text check (length(billing_reason) <= 100),
    due_cents bigint not null,
    paid_cents bigint not null,
    refunded_cents bigint not null default 0,
    currency text not null check (currency ~ '^[a-z]{3}$'),
    period_start timestamptz,
    period_end timestamptz,
    hosted_url text check (length(hosted_url) <= 4000),
    pdf_url text check (length(pdf_url) <= 4000),
    created_at timestamptz not null,
    paid_at timestamptz,
    seen_at timestamptz not null,
    primary key (account_id, stripe_invoice_id)
);

create index invoices_by_age on public.invoices (account_id, created_at desc, stripe_invoice_id desc);

-- What a payment brought, so that giving the money back takes back what it bought.
create table public.payments (
    account_id uuid not null references public.accounts (id) on delete cascade,
    stripe_payment_id text not null unique check (length(stripe_payment_id) between 1 and 255),
    grant_reference text not null check (length(grant_reference) between 1 and 200),
    credits bigint not null check (credits >= 0),
    paid_cents bigint not null check (paid_cents > 0),
    currency text not null check (currency ~ '^[a-z]{3}$'),
    returned_cents bigint not null default 0 check (returned_cents >= 0),
    credits_reclaimed bigint not null default 0 check (credits_reclaimed >= 0),
    credits_short bigint not null default 0 check (credits_short >= 0),  -- were not available: a debt
    created_at timestamptz not null default clock_timestamp(),
    primary key (account_id, stripe_payment_id)
);

-- Each refund and dispute once.
create table public.payment_returns (
    account_id uuid not null,
    stripe_payment_id text not null,
    reference text not null check (length(reference) between 1 and 200),  -- Stripe's id of it
    returned_cents bigint not null check (returned_cents > 0),
    credits_reclaimed bigint not null check (credits_reclaimed >= 0),
    credits_short bigint not null check (credits_short >= 0),
    created_at timestamptz not null default clock_timestamp(),
    undone_at timestamptz,  -- a dispute that was won
    primary key (account_id, reference),
    foreign key (account_id, stripe_payment_id)
        references public.payments (account_id, stripe_payment_id) on delete cascade
);

create index payment_returns_by_payment on public.payment_returns (account_id, stripe_payment_id);

-- Tenancy -----------------------------------------------------------------------------------------

do $$
declare
    table_name text;
begin
    foreach table_name in array array[
        'billing_customers', 'subscriptions', 'subscription_periods', 'checkouts', 'invoices', 'payments',
        'payment_returns'
    ] loop
        execute format('alter table public.%I enable row level security', table_name);
        execute format('alter table public.%I force row level security', table_name);
        execute format(
            'create policy members_read on public.%I for select to app_user
             using (account_id = any (array(select private.member_account_ids())))', table_name);
        execute format(
            'revoke all on public.%I from public, anon, authenticated, service_role', table_name);
        execute format('grant select on public.%I to app_user, service_role', table_name);
    end loop;
    foreach table_name in array array['credit_packs', 'billing_prices'] loop
        execute format('alter table public.%I enable row level security', table_name);
        execute format('alter table public.%I force row level security', table_name);
        execute format(
            'revoke all on public.%I from public, anon, authenticated, service_role', table_name);
        execute format('grant select, insert, update, delete on public.%I to service_role', table_name);
    end loop;
end;
$$;

grant insert, update on public.billing_customers, public.checkouts, public.invoices to service_role;

-- Periods -----------------------------------------------------------------------------------------

-- From the anchor, never from the period before: the 31st stays the 31st where there is one.
create function billing.period_start(anchor_at timestamptz, period_index integer) returns timestamptz
language sql immutable set search_path = '' as $$
    select ((anchor_at at time zone 'utc') + make_interval(months => period_index)) at time zone 'utc'
$$;

-- The period that an instant lies in; the first one when it lies before the anchor.
create function billing.period_index(anchor_at timestamptz, instant timestamptz) returns integer
language plpgsql immutable set search_path = '' as $$
declare
    anchor constant timestamp := anchor_at at time zone 'utc';
    moment constant timestamp := instant at time zone 'utc';
    guess integer := greatest(0, (
        (extract(year from moment) - extract(year from anchor)) * 12
        + extract(month from moment) - extract(month from anchor))::integer);
begin
    if guess > 0 and billing.period_start(anchor_at, guess) > instant then
        return guess - 1;
    end if;
    return guess;
end;
$$;

-- A period's credits, once; after an upgrade within it the difference; how many are new. Who asks holds the
-- subscription's row. A period that was paid for and is over already lives on for a week: our being late is
-- not the customer's loss.
create function billing.grant_period(
    account uuid, subscription_id uuid, period_start timestamptz, period_end timestamptz, plan text
) returns bigint language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    key constant text :=
        subscription_id || ':' || to_char(period_start at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
    known public.subscription_periods;
    credits_due bigint;
    granted ledger.outcome;
begin
    -- First the credits' lock, which everybody who moves them holds.
    perform ledger.lock_account(account);
    select * into known from public.subscription_periods as p
    where p.account_id = account and p.subscription_id = subscription_id and p.period_start = period_start;
    if known.plan = plan then
        return 0;
    end if;
    select p.monthly_credits - coalesce(known.credits_granted, 0) into credits_due
    from public.plans as p where p.name = plan;
    if known.plan is not null and credits_due <= 0 then
        return 0;
    end if;
    if credits_due > 0 then
        granted := ledger.grant_credits(
            account, credits_due,
            case when known.plan is null then 'renewal:' || key else 'upgrade:' || key || ':' || plan end,
            'subscription_renewal',
            case when period_end > clock_timestamp() then period_end
                else clock_timestamp() + interval '7 days' end,
            plan);
        if granted.outcome <> 'done' then
            raise exception 'the credits of a period were %', granted.outcome;
        end if;
    end if;
    insert into public.subscription_periods as p (
        account_id, subscription_id, period_start, period_end, plan, credits_granted
    ) values (account, subscription_id, period_start, period_end, plan, credits_due)
    on conflict on constraint subscription_periods_pkey do update
    set plan = excluded.plan, credits_granted = p.credits_granted + excluded.credits_granted;
    return credits_due;
end;
$$;

-- An account's own subscription goes on where its clock stands now; what it missed it does not bring.
create function billing.resume_own(account uuid) returns public.subscriptions
language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    own public.subscriptions;
    current_index integer;
begin
    select * into own from public.subscriptions as s
    where s.account_id = account and s.clock = 'own' for no key update;
    current_index := billing.period_index(own.anchor_at, clock_timestamp());
    update public.subscriptions as s
    set status = 'active', ended_at = null, updated_at = clock_timestamp(), seen_at = clock_timestamp(),
        period_index = current_index,
        period_start = billing.period_start(s.anchor_at, current_index),
        period_end = billing.period_start(s.anchor_at, current_index + 1)
    where s.account_id = account and s.clock = 'own'
    returning * into own;
    return own;
end;
$$;

create type billing.applied as (
    outcome text,
    subscription_id uuid,
    plan_before text,
    plan_after text,
    status_before text,
    status_after text,
    credits_granted bigint
);

-- A subscription as Stripe has it. seen_at: the database's time before Stripe was asked. status: Stripe's
-- own word. is_paid: the invoice of the period is paid.
-- outcome: done | stale (something newer is known) | incomplete (never paid; nothing is kept)
--          | second_subscription (the account has another one) | unknown_account
create function billing.apply_subscription(
    account uuid, stripe_subscription_id text, stripe_item_id text, plan text, status text,
    anchor_at timestamptz, period_start timestamptz, period_end timestamptz, next_plan text,
    cancels_at timestamptz, seen_at timestamptz, is_paid boolean
) returns billing.applied language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    account_row public.accounts;
    known public.subscriptions;
    applied billing.applied;
    is_over constant boolean := status in ('canceled', 'incomplete_expired');
    new_status constant text := case when is_over then 'ended' else status end;
    plan_in_force text;
begin
    select * into account_row from public.accounts as a where a.id = account for no key update;
    if not found then
        applied.outcome := 'unknown_account';
        return applied;
    end if;
    select * into known from public.subscriptions as s
    where s.stripe_subscription_id = stripe_subscription_id for no key update;
    applied.plan_before := account_row.plan;
    applied.plan_after := account_row.plan;
    applied.status_before := known.status;
    applied.status_after := known.status;
    applied.subscription_id := known.id;
    applied.credits_granted := 0;
    if known.seen_at > seen_at or (known.ended_at is not null and not is_over) then
        applied.outcome := 'stale';
        return applied;
    elsif known.id is null and status in ('incomplete', 'incomplete_expired') then
        applied.outcome := 'incomplete';
        return applied;
    elsif not is_over and exists (
        select from public.subscriptions as s
        where s.account_id = account and s.clock = 'stripe' and s.ended_at is null
            and s.stripe_subscription_id <> stripe_subscription_id
    ) then
        applied.outcome := 'second_subscription';
        return applied;
    end if;
    if not is_over then
        update public.subscriptions as s
        set status = 'ended', ended_at = clock_timestamp(), updated_at = clock_timestamp()
        where s.account_id = account and s.clock = 'own' and s.ended_at is null;
    end if;
    insert into public.subscriptions as s (
        account_id, plan, status, clock, stripe_subscription_id, stripe_item_id, anchor_at, period_start,
        period_end, next_plan, cancels_at, seen_at, ended_at
    ) values (
        account, plan, new_status, 'stripe', stripe_subscription_id, stripe_item_id, anchor_at,
        period_start, period_end, next_plan, cancels_at, seen_at,
        case when is_over then clock_timestamp() end
    )
    on conflict on constraint subscriptions_stripe_subscription_id_key do update
    set plan = excluded.plan, status = excluded.status, stripe_item_id = excluded.stripe_item_id,
        anchor_at = excluded.anchor_at, period_start = excluded.period_start,
        period_end = excluded.period_end, next_plan = excluded.next_plan,
        cancels_at = excluded.cancels_at, seen_at = excluded.seen_at, updated_at = clock_timestamp(),
        ended_at = coalesce(s.ended_at, excluded.ended_at)
    returning s.id into applied.subscription_id;
    applied.status_after := new_status;
    if is_paid then
        applied.credits_granted := billing.grant_period(
            account, applied.subscription_id, period_start, period_end, plan);
    end if;
    if is_over and not exists (
        select from public.subscriptions as s where s.account_id = account and s.ended_at is null
    ) then
        plan_in_force := (billing.resume_own(account)).plan;
    elsif new_status = 'unpaid' then
        plan_in_force := 'free';
    elsif not is_over then
        plan_in_force := plan;
    end if;
    if plan_in_force <> account_row.plan then
        update public.accounts as a set plan = plan_in_force where a.id = account;
        applied.plan_after := plan_in_force;
    end if;
    applied.outcome := 'done';
    return applied;
end;
$$;

-- Subscriptions whose period is over. Those of Stripe's clock are given an hour, in which Stripe tells us.
create function public.get_renewable_subscriptions(subscriptions_max integer default 1000)
returns table (
    account_id uuid, subscription_id uuid, plan text, clock text, stripe_subscription_id text,
    period_start timestamptz, period_end timestamptz, monthly_credits bigint
) language sql stable security definer set search_path = '' as $$
    select s.account_id, s.id, s.plan, s.clock, s.stripe_subscription_id, s.period_start, s.period_end,
        case when s.renews then p.monthly_credits else 0 end
    from public.subscriptions as s
    join public.plans as p on p.name = s.plan
    join public.accounts as a on a.id = s.account_id and a.deleted_at is null
    where s.ended_at is null
        and s.period_end <= clock_timestamp()
            - case when s.clock = 'stripe' then interval '1 hour' else interval '0' end
    order by s.period_end, s.id
    limit subscriptions_max
$$;

-- The next period of subscriptions of our own clock, at most subscriptions_max of them; those of whom
-- somebody else is just now taking care are left to them. A period that was missed altogether is not made up for:
-- free credits do not pile up.
create function billing.renew_own(subscriptions_max integer)
returns table (renewed bigint, credits_granted bigint)
language plpgsql security definer set search_path = '' as $$
declare
    due public.subscriptions;
    current_index integer;
begin
    renewed := 0;
    credits_granted := 0;
    for due in
        select s.* from public.subscriptions as s
        join public.accounts as a on a.id = s.account_id and a.deleted_at is null
        where s.clock = 'own' and s.ended_at is null and s.period_end <= clock_timestamp()
        order by s.period_end
        limit subscriptions_max
        for no key update of s skip locked
    loop
        current_index := billing.period_index(due.anchor_at, clock_timestamp());
        update public.subscriptions as s
        set period_index = current_index, updated_at = clock_timestamp(), seen_at = clock_timestamp(),
            period_start = billing.period_start(s.anchor_at, current_index),
            period_end = billing.period_start(s.anchor_at, current_index + 1)
        where s.account_id = due.account_id and s.id = due.id
        returning * into due;
        if due.renews then
            credits_granted := credits_granted + billing.grant_period(
                due.account_id, due.id, due.period_start, due.period_end, due.plan);
        end if;
        renewed := renewed + 1;
    end loop;
    return next;
end;
$$;

-- Bought credits; how many are new. Repeated, it grants nothing.
create function billing.complete_purchase(
    account uuid, checkout_id uuid, stripe_session_id text, stripe_payment_id text, credits bigint,
    paid_cents bigint, currency text
) returns bigint language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    reference constant text := 'purchase:' || stripe_session_id;
    granted ledger.outcome;
begin
    granted := ledger.grant_credits(account, credits, reference, 'purchase', null, null);
    if granted.outcome not in ('done', 'repeated') then
        raise exception 'bought credits were %', granted.outcome;
    end if;
    update public.checkouts as c
    set status = 'completed', completed_at = coalesce(c.completed_at, clock_timestamp()),
        stripe_session_id = stripe_session_id
    where c.account_id = account and c.id = checkout_id;
    if stripe_payment_id is not null and paid_cents > 0 then
        perform billing.note_payment(account, stripe_payment_id, reference, credits, paid_cents, currency);
    end if;
    return case granted.outcome when 'done' then credits else 0 end;
end;
$$;

create function billing.note_payment(
    account uuid, stripe_payment_id text, grant_reference text, credits bigint, paid_cents bigint,
    currency text
) returns void language sql security definer set search_path = '' as $$
    insert into public.payments (
        account_id, stripe_payment_id, grant_reference, credits, paid_cents, currency
    ) values (account, stripe_payment_id, grant_reference, credits, paid_cents, currency)
    on conflict do nothing
$$;

-- Takes back the credits of a grant and records those that are not available as a debt. Returns the credits
-- taken at once.
create function ledger.reclaim(account uuid, grant_reference text, credits bigint, reference text)
returns bigint language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    locked public.credit_accounts := ledger.lock_account(account);
    debt public.credit_debts;
begin
    if credits <= 0 or exists (
        select from public.credit_holds as h where h.account_id = account and h.reference = reference
    ) then
        return 0;
    end if;
    insert into public.credit_debts (account_id, reference, lot_id, position, credits_owed)
    values (
        account, reference,
        (
            select e.lot_id from public.credit_entries as e
            where e.account_id = account and e.kind = 'grant' and e.reference = grant_reference
        ),
        locked.entries_count, credits
    )
    on conflict do nothing
    returning * into debt;
    return case when found then ledger.pay_debt(debt) else 0 end;
end;
$$;

-- Ends what is left of a debt and returns what was paid of it to the lots that paid. Returns the credits that
-- came back.
create function ledger.undo_reclaim(account uuid, reference text, undo_reference text)
returns bigint language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    credits_back bigint;
begin
    perform ledger.lock_account(account);
    update public.credit_debts as d set credits_owed = d.credits_paid
    where d.account_id = account and d.reference = reference;
    select h.credits_spent - h.credits_refunded into credits_back from public.credit_holds as h
    where h.account_id = account and h.reference = reference;
    if credits_back > 0 then
        perform ledger.refund_charge(account, reference, credits_back, undo_reference, null);
    end if;
    return coalesce(credits_back, 0);
end;
$$;

create type billing.returned as (
    outcome text,
    account_id uuid,
    credits_reclaimed bigint,
    credits_short bigint
);

-- Money that went back, by refund or dispute, takes back its share of the credits it bought. reference:
-- Stripe's id of the refund or dispute. outcome: done | repeated | unknown_payment
create function billing.return_payment(stripe_payment_id text, reference text, returned_cents bigint)
returns billing.returned language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    payment public.payments;
    answer billing.returned;
    credits_due bigint;
begin
    select p.* into payment from public.payments as p where p.stripe_payment_id = stripe_payment_id;
    if not found then
        answer.outcome := 'unknown_payment';
        return answer;
    end if;
    perform ledger.lock_account(payment.account_id);  -- before the look: rivals wait here
    select p.* into payment from public.payments as p where p.stripe_payment_id = stripe_payment_id;
    answer.account_id := payment.account_id;
    select 'repeated', r.credits_reclaimed, r.credits_short
    into answer.outcome, answer.credits_reclaimed, answer.credits_short
    from public.payment_returns as r
    where r.account_id = payment.account_id and r.reference = reference;
    if found then
        return answer;
    end if;
    -- Of the whole, less what went before: shares that are rounded each by itself would not add up.
    -- What was undone may have left more with the others than is their share; that stays.
    credits_due := greatest(0,
        payment.credits * least(payment.returned_cents + returned_cents, payment.paid_cents)
        / payment.paid_cents - payment.credits_reclaimed - payment.credits_short);
    answer.credits_reclaimed := ledger.reclaim(
        payment.account_id, payment.grant_reference, credits_due, 'return:' || reference);
    answer.credits_short := credits_due - answer.credits_reclaimed;
    insert into public.payment_returns (
        account_id, stripe_payment_id, reference, returned_cents, credits_reclaimed, credits_short
    ) values (
        payment.account_id, stripe_payment_id, reference, returned_cents, answer.credits_reclaimed,
        answer.credits_short
    );
    update public.payments as p
    set returned_cents = p.returned_cents + returned_cents,
        credits_reclaimed = p.credits_reclaimed + answer.credits_reclaimed,
        credits_short = p.credits_short + answer.credits_short
    where p.account_id = payment.account_id and p.stripe_payment_id = stripe_payment_id;
    answer.outcome := 'done';
    return answer;
end;
$$;

-- A dispute that was won or a refund that failed: what it took comes back to the lots it was taken from, and
-- what it is still owed is owed no longer.
-- outcome: done | repeated | unknown_payment
create function billing.undo_return(reference text) returns billing.returned
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    undone public.payment_returns;
    answer billing.returned;
begin
    select r.* into undone from public.payment_returns as r where r.reference = reference;
    if not found then
        answer.outcome := 'unknown_payment';
        return answer;
    end if;
    answer.account_id := undone.account_id;
    answer.credits_reclaimed := 0;
    answer.credits_short := 0;
    perform ledger.lock_account(undone.account_id);
    update public.payment_returns as r set undone_at = clock_timestamp()
    where r.account_id = undone.account_id and r.reference = reference and r.undone_at is null
    returning * into undone;
    if not found then
        answer.outcome := 'repeated';
        return answer;
    end if;
    answer.credits_reclaimed := -ledger.undo_reclaim(
        undone.account_id, 'return:' || reference, 'undo:' || reference);
    update public.payments as p
    set returned_cents = p.returned_cents - undone.returned_cents,
        credits_reclaimed = p.credits_reclaimed - undone.credits_reclaimed,
        credits_short = p.credits_short - undone.credits_short
    where p.account_id = undone.account_id and p.stripe_payment_id = undone.stripe_payment_id;
    answer.outcome := 'done';
    return answer;
end;
$$;

create index payment_returns_by_reference on public.payment_returns (reference);

-- Every account has a subscription of our own clock. Free credits come to a person once a month, not once for
-- each account that a person makes: they come to the account of the sign-up.
create function billing.begin_own() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
    insert into public.subscriptions (
        account_id, plan, status, clock, renews, anchor_at, period_start, period_end, seen_at
    ) values (
        new.id, new.plan, 'active', 'own',
        exists (select from public.sign_ups as s where s.account_id = new.id),
        new.created_at, new.created_at, billing.period_start(new.created_at, 1), clock_timestamp()
    );
    return null;
end;
$$;

create trigger begin_own after insert on public.accounts
    for each row execute function billing.begin_own();

insert into public.subscriptions (
    account_id, plan, status, clock, renews, anchor_at, period_index, period_start, period_end, seen_at
)
select a.id, a.plan, 'active', 'own',
    exists (select from public.sign_ups as s where s.account_id = a.id), a.created_at, i.n,
    billing.period_start(a.created_at, i.n), billing.period_start(a.created_at, i.n + 1),
    clock_timestamp()
from public.accounts as a
cross join lateral (select billing.period_index(a.created_at, clock_timestamp()) as n) as i
-- Whoever is nobody in particular, see 0014, is sold nothing.
where a.id <> '00000000-0000-4000-8000-000000000000';

-- Who may execute what ----------------------------------------------------------------------------

do $$
declare
    routine regprocedure;
begin
    for routine in
        select p.oid::regprocedure from pg_proc as p
        where p.pronamespace = 'billing'::regnamespace
            or (p.pronamespace = 'ledger'::regnamespace and p.proname in ('reclaim', 'undo_reclaim'))
            or (p.pronamespace = 'public'::regnamespace and p.proname = 'get_renewable_subscriptions')
    loop
        execute format(
            'revoke all on function %s from public, anon, authenticated, service_role', routine);
    end loop;
    for routine in
        select p.oid::regprocedure from pg_proc as p
        join pg_language as l on l.oid = p.prolang and l.lanname = 'plpgsql'
        where p.prosecdef and p.prorettype <> 'trigger'::regtype
            and (p.pronamespace = 'billing'::regnamespace or p.proname in ('reclaim', 'undo_reclaim'))
    loop
        execute format('alter function %s set enable_seqscan = off', routine);
    end loop;
end;
$$;

grant execute on function
    billing.period_start(timestamptz, integer),
    billing.period_index(timestamptz, timestamptz),
    billing.grant_period(uuid, uuid, timestamptz, timestamptz, text),
    billing.apply_subscription(
        uuid, text, text, text, text, timestamptz, timestamptz, timestamptz, text, timestamptz, timestamptz,
        boolean),
    billing.renew_own(integer),
    billing.complete_purchase(uuid, uuid, text, text, bigint, bigint, text),
    billing.note_payment(uuid, text, text, bigint, bigint, text),
    billing.return_payment(text, text, bigint),
    billing.undo_return(text),
    public.get_renewable_subscriptions(integer)
to service_role;
