-- What a caller may see of billing, one call each.

-- What went back of an invoice is known by its payment. The id is for pages, which go by time and id.
alter table public.invoices
    add column id uuid not null default gen_random_uuid(),
    add column stripe_payment_id text check (length(stripe_payment_id) between 1 and 255),
    drop column refunded_cents;

drop index public.invoices_by_age;
create index invoices_by_age on public.invoices (account_id, created_at desc, id desc);

-- Whoever goes on with a checkout asks Stripe for the same as the one who began it.
alter table public.checkouts
    add column success_url text not null default '' check (length(success_url) <= 2000),
    add column cancel_url text not null default '' check (length(cancel_url) <= 2000);

create index checkouts_at_the_till on public.checkouts (account_id, created_at desc)
    where plan is not null and status in ('opening', 'open');

-- No row: the account cannot be seen.
create function caller.billing_standing(claims text, chosen uuid)
returns table (
    account_id uuid, plan_in_force text, stripe_customer_id text, plan text, status text, clock text,
    stripe_subscription_id text, stripe_item_id text, period_start timestamptz, period_end timestamptz,
    next_plan text, cancels_at timestamptz, monthly_credits bigint, credits_granted bigint,
    price_cents integer, currency text
) language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
    account constant uuid := caller.enter(claims, chosen);
begin
    return query
    select a.id, a.plan, c.stripe_customer_id, s.plan, s.status, s.clock, s.stripe_subscription_id,
        s.stripe_item_id, s.period_start, s.period_end, s.next_plan, s.cancels_at,
        case when s.renews then p.monthly_credits else 0 end, coalesce(g.credits_granted, 0), p.price_cents,
        p.currency
    from public.accounts as a
    join public.subscriptions as s on s.account_id = a.id and s.ended_at is null
    join public.plans as p on p.name = s.plan
    left join public.billing_customers as c on c.account_id = a.id
    left join public.subscription_periods as g
        on g.account_id = s.account_id and g.subscription_id = s.id and g.period_start = s.period_start
    where a.id = account;
end;
$$;

-- No row: the account cannot be seen. A row without an id: the account has no such checkout.
create function caller.checkout(claims text, chosen uuid, checkout uuid)
returns setof public.checkouts language plpgsql set search_path = '' as $$
declare
    account constant uuid := caller.enter(claims, chosen);
begin
    return query
    select c.* from public.accounts as a
    left join public.checkouts as c on c.account_id = a.id and c.id = checkout
    where a.id = account;
end;
$$;

-- Newest first, from behind a place; without a place from the first. Rows as above.
create function caller.invoices(
    claims text, chosen uuid, before_at timestamptz, before_id uuid, invoices_max integer
) returns table (
    id uuid, number text, status text, billing_reason text, due_cents bigint, paid_cents bigint,
    refunded_cents bigint, currency text, period_start timestamptz, period_end timestamptz, hosted_url text,
    pdf_url text, created_at timestamptz, paid_at timestamptz
) language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
    account constant uuid := caller.enter(claims, chosen);
begin
    return query
    select i.id, i.number, i.status, i.billing_reason, i.due_cents, i.paid_cents,
        coalesce(p.returned_cents, 0), i.currency, i.period_start, i.period_end, i.hosted_url, i.pdf_url,
        i.created_at, i.paid_at
    from public.accounts as a
    left join lateral (
        select * from public.invoices as n
        where n.account_id = account
            and (n.created_at, n.id) < (
                coalesce(before_at, 'infinity'),
                coalesce(before_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
        order by n.created_at desc, n.id desc
        limit invoices_max
    ) as i on true
    left join public.payments as p
        on p.account_id = i.account_id and p.stripe_payment_id = i.stripe_payment_id
    where a.id = account
    order by i.created_at desc, i.id desc;
end;
$$;

revoke all on function
    caller.billing_standing(text, uuid),
    caller.checkout(text, uuid, uuid),
    caller.invoices(text, uuid, timestamptz, uuid, integer)
from public, anon, authenticated, service_role;
grant execute on function
    caller.billing_standing(text, uuid),
    caller.checkout(text, uuid, uuid),
    caller.invoices(text, uuid, timestamptz, uuid, integer)
to app_user;
