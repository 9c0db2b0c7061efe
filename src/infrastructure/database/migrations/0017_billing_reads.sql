-- What a caller may see of billing, one call each.

-- What went back of an invoice is known by its payment.
alter table public.invoices
    add column stripe_payment_id text check (length(stripe_payment_id) between 1 and 255),
    drop column refunded_cents;

-- As in 0016, but what has ended and is told again as alive is found out before the account's own
-- subscription is put to rest for it.
create or replace function billing.apply_subscription(
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

-- As in 0016, but a share is never below nothing.
create or replace function billing.return_payment(stripe_payment_id text, reference text, returned_cents bigint)
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
        payment.account_id, payment.grant_reference, credits_due, 'return:' || reference, null);
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
