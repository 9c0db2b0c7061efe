-- Periods of subscriptions and their credits, purchases, refunds and disputes; and the reads of callers.

-- Periods -----------------------------------------------------------------------------------------

-- Computed from the anchor and not from the previous period: the 31st stays the 31st in months that have one.
create function billing.period_start(anchor_at timestamptz, period_index integer) returns timestamptz
language sql immutable set search_path = '' as $$
    select ((anchor_at at time zone 'utc') + make_interval(months => period_index)) at time zone 'utc'
$$;

-- The period that contains an instant; the first period if the instant is before the anchor.
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

-- Grants a period's credits once and the difference after an upgrade within it; returns the new credits. The
-- caller has locked the subscription's row. If the paid period is already over, its credits expire after a week:
-- our delay is not the customer's loss.
create function billing.grant_period(
    account uuid, subscription_id uuid, period_start timestamptz, period_end timestamptz, plan text
) returns bigint language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    key constant text :=
        subscription_id || ':' || to_char(period_start at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
    existing public.subscription_periods;
    credits_due bigint;
    granted ledger.outcome;
begin
    -- The lock that every change of credits takes first.
    perform ledger.lock_account(account);
    select * into existing from public.subscription_periods as p
    where p.account_id = account and p.subscription_id = subscription_id and p.period_start = period_start;
    if existing.plan = plan then
        return 0;
    end if;
    select p.monthly_credits - coalesce(existing.credits_granted, 0) into credits_due
    from public.plans as p where p.name = plan;
    if existing.plan is not null and credits_due <= 0 then
        return 0;
    end if;
    if credits_due > 0 then
        granted := ledger.grant_credits(
            account, credits_due,
            case when existing.plan is null then 'renewal:' || key else 'upgrade:' || key || ':' || plan end,
            'subscription_renewal',
            case when period_end > clock_timestamp() then period_end
                else clock_timestamp() + interval '7 days' end,
            plan);
        if granted.outcome <> 'done' then
            raise exception 'the grant of a period failed: %', granted.outcome;
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

-- Subscriptions of our own clock ------------------------------------------------------------------

-- Every account has an internal subscription. Free credits are granted to the account of the sign-up only: once
-- a month per person, not per account of that person.
create function billing.create_internal() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
    insert into public.subscriptions (
        account_id, plan, status, clock, renews, anchor_at, period_start, period_end, seen_at
    ) values (
        new.id, new.plan, 'active', 'internal',
        exists (select from public.sign_ups as s where s.account_id = new.id),
        new.created_at, new.created_at, billing.period_start(new.created_at, 1), clock_timestamp()
    );
    return null;
end;
$$;

create trigger create_internal_subscription after insert on public.accounts
    for each row execute function billing.create_internal();

-- Resumes the internal subscription at the current period. Missed periods grant nothing.
create function billing.resume_internal(account uuid) returns public.subscriptions
language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    own public.subscriptions;
    current_index integer;
begin
    select * into own from public.subscriptions as s
    where s.account_id = account and s.clock = 'internal' for no key update;
    current_index := billing.period_index(own.anchor_at, clock_timestamp());
    update public.subscriptions as s
    set status = 'active', ended_at = null, updated_at = clock_timestamp(), seen_at = clock_timestamp(),
        period_index = current_index,
        period_start = billing.period_start(s.anchor_at, current_index),
        period_end = billing.period_start(s.anchor_at, current_index + 1)
    where s.account_id = account and s.clock = 'internal'
    returning * into own;
    return own;
end;
$$;

-- Subscriptions whose period is over. Stripe has an hour to report the renewal of its subscriptions.
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

-- Renews at most subscriptions_max internal subscriptions; locked ones are skipped. A period that was missed
-- completely grants nothing: free credits do not accumulate.
create function billing.renew_internal(subscriptions_max integer)
returns table (renewed bigint, credits_granted bigint)
language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
declare
    due public.subscriptions;
    current_index integer;
begin
    renewed := 0;
    credits_granted := 0;
    for due in
        select s.* from public.subscriptions as s
        join public.accounts as a on a.id = s.account_id and a.deleted_at is null
        where s.clock = 'internal' and s.ended_at is null and s.period_end <= clock_timestamp()
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

-- Subscriptions of Stripe's clock -----------------------------------------------------------------

create type billing.applied as (
    outcome text,
    subscription_id uuid,
    plan_before text,
    plan_after text,
    status_before text,
    status_after text,
    credits_granted bigint
);

-- Stores a subscription as Stripe reports it. seen_at: the database's time before the request to Stripe. status:
-- Stripe's value. is_paid: the invoice of the period is paid.
-- outcome: done | stale (a newer state is stored) | incomplete (never paid; nothing is stored) |
-- second_subscription (the account has another one) | unknown_account
create function billing.apply_subscription(
    account uuid, stripe_subscription_id text, stripe_item_id text, plan text, status text,
    anchor_at timestamptz, period_start timestamptz, period_end timestamptz, next_plan text,
    cancels_at timestamptz, seen_at timestamptz, is_paid boolean
) returns billing.applied language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    account_row public.accounts;
    existing public.subscriptions;
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
    select * into existing from public.subscriptions as s
    where s.stripe_subscription_id = stripe_subscription_id for no key update;
    applied.plan_before := account_row.plan;
    applied.plan_after := account_row.plan;
    applied.status_before := existing.status;
    applied.status_after := existing.status;
    applied.subscription_id := existing.id;
    applied.credits_granted := 0;
    if existing.seen_at > seen_at or (existing.ended_at is not null and not is_over) then
        applied.outcome := 'stale';
        return applied;
    elsif existing.id is null and status in ('incomplete', 'incomplete_expired') then
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
        where s.account_id = account and s.clock = 'internal' and s.ended_at is null;
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
        plan_in_force := (billing.resume_internal(account)).plan;
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

-- Payments ----------------------------------------------------------------------------------------

create function billing.record_payment(
    account uuid, stripe_payment_id text, grant_reference text, credits bigint, paid_cents bigint,
    currency text
) returns void language sql security definer set search_path = '' as $$
    insert into public.payments (
        account_id, stripe_payment_id, grant_reference, credits, paid_cents, currency
    ) values (account, stripe_payment_id, grant_reference, credits, paid_cents, currency)
    on conflict do nothing
$$;

-- Grants purchased credits and returns the new ones. Idempotent.
create function billing.complete_purchase(
    account uuid, checkout_id uuid, stripe_session_id text, stripe_payment_id text, credits bigint,
    paid_cents bigint, currency text
) returns bigint language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    reference constant text := 'purchase:' || stripe_session_id;
    granted ledger.outcome;
begin
    granted := ledger.grant_credits(account, credits, reference, 'purchase', null, null);
    if granted.outcome not in ('done', 'repeated') then
        raise exception 'the grant of a purchase failed: %', granted.outcome;
    end if;
    update public.checkouts as c
    set status = 'completed', completed_at = coalesce(c.completed_at, clock_timestamp()),
        stripe_session_id = stripe_session_id
    where c.account_id = account and c.id = checkout_id;
    if stripe_payment_id is not null and paid_cents > 0 then
        perform billing.record_payment(account, stripe_payment_id, reference, credits, paid_cents, currency);
    end if;
    return case granted.outcome when 'done' then credits else 0 end;
end;
$$;

-- Records what an invoice of a subscription paid for: the credits of its period or, for an upgrade within one,
-- those that were added. False if the period is not stored yet.
create function billing.record_invoice(
    account uuid, subscription_id uuid, invoice_start timestamptz, plan text, is_upgrade boolean,
    stripe_payment_id text, paid_cents bigint, currency text
) returns boolean language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    period public.subscription_periods;
    key text;
    reference text;
    credits bigint;
begin
    select * into period from public.subscription_periods as p
    where p.account_id = account and p.subscription_id = subscription_id
        and p.period_start <= invoice_start and p.period_end > invoice_start
    order by p.period_start desc limit 1;
    if not found then
        return false;
    end if;
    key := subscription_id || ':'
        || to_char(period.period_start at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
    reference := 'renewal:' || key;
    if is_upgrade then
        select e.reference, e.credits_delta into reference, credits from public.credit_entries as e
        where e.account_id = account and e.kind = 'grant' and e.reference = 'upgrade:' || key || ':' || plan;
        if not found then
            -- The upgrade was applied before the plan that preceded it.
            reference := 'renewal:' || key;
            select greatest(0, period.credits_granted - coalesce(sum(p.credits), 0)) into credits
            from public.payments as p where p.account_id = account and p.grant_reference = reference;
        end if;
    else
        select p.monthly_credits into credits from public.plans as p where p.name = plan;
    end if;
    perform billing.record_payment(account, stripe_payment_id, reference, credits, paid_cents, currency);
    return true;
end;
$$;

-- Refunds and disputes ----------------------------------------------------------------------------

create type billing.reversal as (
    outcome text,
    account_id uuid,
    credits_reclaimed bigint,
    credits_short bigint
);

-- Takes back the share of the credits that returned money had bought. reference: Stripe's id of the refund or
-- dispute. outcome: done | repeated | unknown_payment
create function billing.reverse_payment(stripe_payment_id text, reference text, returned_cents bigint)
returns billing.reversal language plpgsql security definer set search_path = ''
set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    payment public.payments;
    result billing.reversal;
    credits_due bigint;
begin
    select p.* into payment from public.payments as p where p.stripe_payment_id = stripe_payment_id;
    if not found then
        result.outcome := 'unknown_payment';
        return result;
    end if;
    perform ledger.lock_account(payment.account_id);  -- before the lookup: concurrent calls wait here
    select p.* into payment from public.payments as p where p.stripe_payment_id = stripe_payment_id;
    result.account_id := payment.account_id;
    select 'repeated', r.credits_reclaimed, r.credits_short
    into result.outcome, result.credits_reclaimed, result.credits_short
    from public.payment_reversals as r
    where r.account_id = payment.account_id and r.reference = reference;
    if found then
        return result;
    end if;
    -- The share of the total minus earlier reversals, because separately rounded shares would not add up. A
    -- reversal that was undone may have left the others with more than their share; that stays.
    credits_due := greatest(0,
        payment.credits * least(payment.returned_cents + returned_cents, payment.paid_cents)
        / payment.paid_cents - payment.credits_reclaimed - payment.credits_short);
    result.credits_reclaimed := ledger.reclaim(
        payment.account_id, payment.grant_reference, credits_due, 'return:' || reference);
    result.credits_short := credits_due - result.credits_reclaimed;
    insert into public.payment_reversals (
        account_id, stripe_payment_id, reference, returned_cents, credits_reclaimed, credits_short
    ) values (
        payment.account_id, stripe_payment_id, reference, returned_cents, result.credits_reclaimed,
        result.credits_short
    );
    update public.payments as p
    set returned_cents = p.returned_cents + returned_cents,
        credits_reclaimed = p.credits_reclaimed + result.credits_reclaimed,
        credits_short = p.credits_short + result.credits_short
    where p.account_id = payment.account_id and p.stripe_payment_id = stripe_payment_id;
    result.outcome := 'done';
    return result;
end;
$$;

-- Undoes the reversal of a dispute that was won or a refund that failed: its credits return to their lots, and
-- the rest of its debt is cancelled. outcome: done | repeated | unknown_payment
create function billing.undo_reversal(reference text) returns billing.reversal
language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    undone public.payment_reversals;
    result billing.reversal;
begin
    select r.* into undone from public.payment_reversals as r where r.reference = reference;
    if not found then
        result.outcome := 'unknown_payment';
        return result;
    end if;
    result.account_id := undone.account_id;
    result.credits_reclaimed := 0;
    result.credits_short := 0;
    perform ledger.lock_account(undone.account_id);
    update public.payment_reversals as r set undone_at = clock_timestamp()
    where r.account_id = undone.account_id and r.reference = reference and r.undone_at is null
    returning * into undone;
    if not found then
        result.outcome := 'repeated';
        return result;
    end if;
    result.credits_reclaimed := -ledger.undo_reclaim(
        undone.account_id, 'return:' || reference, 'undo:' || reference);
    update public.payments as p
    set returned_cents = p.returned_cents - undone.returned_cents,
        credits_reclaimed = p.credits_reclaimed - undone.credits_reclaimed,
        credits_short = p.credits_short - undone.credits_short
    where p.account_id = undone.account_id and p.stripe_payment_id = undone.stripe_payment_id;
    result.outcome := 'done';
    return result;
end;
$$;

grant execute on function
    billing.period_start(timestamptz, integer),
    billing.period_index(timestamptz, timestamptz),
    billing.grant_period(uuid, uuid, timestamptz, timestamptz, text),
    billing.apply_subscription(
        uuid, text, text, text, text, timestamptz, timestamptz, timestamptz, text, timestamptz, timestamptz,
        boolean),
    billing.renew_internal(integer),
    billing.complete_purchase(uuid, uuid, text, text, bigint, bigint, text),
    billing.record_payment(uuid, text, text, bigint, bigint, text),
    billing.record_invoice(uuid, uuid, timestamptz, text, boolean, text, bigint, text),
    billing.reverse_payment(text, text, bigint),
    billing.undo_reversal(text),
    public.get_renewable_subscriptions(integer)
to service_role;
