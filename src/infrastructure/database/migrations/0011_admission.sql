-- Whose turn it is. A run waits in its own row until its account has room for it, and only then in the
-- engine's queue: however many an account has waiting, it has no more than its plan's number in front of
-- others. Nothing watches over that: the transaction that ends a run admits the next one.

alter table public.plans
    add column queue_priority smallint not null default 4 check (queue_priority between 1 and 100),
    add column runs_at_once integer not null default 1 check (runs_at_once > 0),
    add column bulk_max integer not null default 5 check (bulk_max > 0),
    add column light_per_hour integer not null default 5 check (light_per_hour > 0),
    add column history_days integer check (history_days > 0);  -- null: for ever

update public.plans as p
set queue_priority = v.queue_priority, runs_at_once = v.runs_at_once, bulk_max = v.bulk_max,
    light_per_hour = v.light_per_hour, history_days = v.history_days
from (values
    ('free', 4, 1, 5, 5, 30),
    ('growth', 3, 2, 25, 25, 60),
    ('pro', 2, 5, 100, 150, 180),
    ('agency', 2, 10, 250, 500, 365),
    ('enterprise', 1, 20, 500, 2000, null)
) as v (name, queue_priority, runs_at_once, bulk_max, light_per_hour, history_days)
where p.name = v.name;

alter table public.runs
    add column queue text not null default 'runs' check (length(queue) between 1 and 100),
    -- One that only waits for others, its own children for example, takes nobody's turn.
    add column takes_turn boolean not null default true,
    add column admitted_at timestamptz,  -- null: it waits for its account's turn
    add column refund_policy integer not null default 1 check (refund_policy > 0),
    add column cost_nanodollars bigint check (cost_nanodollars >= 0),  -- null: not known, or not ended
    -- Which step began when: [{"step": text, "at": instant}]. What follows a step tells how long it took.
    add column steps jsonb not null default '[]' check (jsonb_typeof(steps) = 'array'),
    add column retry_of uuid,
    add constraint runs_retry_of foreign key (account_id, retry_of)
        references public.runs (account_id, id) on delete set null (retry_of);

update public.runs set admitted_at = created_at where admitted_at is null;
alter table public.runs add check (admitted_at is not null or status in ('queued', 'failed', 'cancelled'));

drop index public.runs_queued;
create index runs_waiting on public.runs (account_id, created_at, id)
    where status = 'queued' and admitted_at is null;
create index runs_in_turn on public.runs (account_id)
    where takes_turn and admitted_at is not null and status in ('queued', 'processing', 'paused');
create index runs_by_retry on public.runs (account_id, retry_of) where retry_of is not null;

-- Puts a run into the engine's queue. priority is when its turn would be: now, and the more of the
-- account's are at work, the later, each by its plan's step. So the twentieth of one account comes after
-- the first of another, and nobody waits for ever, because everybody else's time goes on.
create function runs.enqueue(account uuid, id uuid, at_work bigint, step_s integer) returns void
language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    epoch constant timestamptz := '2026-01-01 00:00:00+00';
    run public.runs;
begin
    update public.runs as r set admitted_at = clock_timestamp()
    where r.account_id = account and r.id = enqueue.id returning * into run;
    perform dbos.enqueue_workflow(
        workflow_name => run.kind, queue_name => run.queue,
        positional_args => array[to_json(account), to_json(run.id)], workflow_id => run.engine_id,
        priority => extract(epoch from clock_timestamp() - epoch)::integer + step_s * at_work::integer);
end;
$$;

-- Lets the account's next runs into the engine's queue, as many as its plan has room for. The account's
-- credits must be locked: whoever admits for one account, admits alone. A waiting run that somebody else
-- has locked is being cancelled, and whoever does that admits in its place.
create function runs.admit(account uuid) returns void language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    plan public.plans;
    at_work bigint;
    next_id uuid;
begin
    -- The common case: nobody waits.
    if not exists (
        select from public.runs as r
        where r.account_id = account and r.status = 'queued' and r.admitted_at is null
    ) then
        return;
    end if;
    select p.* into plan from public.accounts as a join public.plans as p on p.name = a.plan
    where a.id = account;
    select count(*) into at_work from public.runs as r
    where r.account_id = account and r.takes_turn and r.admitted_at is not null
        and r.status in ('queued', 'processing', 'paused');
    for next_id in
        select r.id from public.runs as r
        where r.account_id = account and r.status = 'queued' and r.admitted_at is null
        order by r.created_at, r.id
        limit greatest(plan.runs_at_once - at_work, 0)
        for no key update skip locked
    loop
        at_work := at_work + 1;
        perform runs.enqueue(account, next_id, at_work, plan.queue_priority);
    end loop;
end;
$$;

drop function runs.start(
    uuid, uuid, text, jsonb, bigint, text, text, integer, text, text, uuid, uuid, uuid);

-- Credits set aside, the run's row and its place in the queue, all or nothing and in one round trip. The
-- same id again: the same run.
-- outcome: started | repeated | duplicate (the run in progress) | insufficient | key_capped | unknown_key
--          | unknown_account | unknown_type | wrong_sign | conflicting
create function runs.start(
    account uuid, id uuid, kind text, subject jsonb, credits bigint, transaction_type text, queue text,
    takes_turn boolean default true, dedup_key text default null, parent uuid default null,
    user_id uuid default null, api_key uuid default null, refund_policy integer default 1,
    retry_of uuid default null
) returns runs.answer language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    -- Rivals of one account wait here: what is looked for below cannot appear meanwhile.
    locked public.credit_accounts := ledger.lock_account(account);
    found_run public.runs;
    held ledger.outcome;
    hold text := case when credits > 0 then 'run:' || id end;
begin
    if locked.account_id is null then
        return row('unknown_account', null, null)::runs.answer;
    end if;
    select * into found_run from public.runs as r where r.account_id = account and r.id = start.id;
    if found then
        return row(
            case when found_run.kind = kind and found_run.subject = subject
                and found_run.credits_held = credits then 'repeated' else 'conflicting' end,
            found_run, locked.credits_available)::runs.answer;
    end if;
    select * into found_run from public.runs as r
    where r.account_id = account and r.dedup_key = start.dedup_key
        and r.status in ('queued', 'processing', 'paused');
    if found then
        return row('duplicate', found_run, locked.credits_available)::runs.answer;
    end if;
    if credits > 0 then
        held := ledger.place_hold(account, credits, hold, transaction_type, null, api_key);
        if held.outcome <> 'done' then
            return row(
                case held.outcome when 'repeated' then 'conflicting' else held.outcome end,
                null, held.credits_available)::runs.answer;
        end if;
        locked.credits_available := held.credits_available;
    end if;
    insert into public.runs (
        account_id, id, kind, subject, dedup_key, parent_id, credits_held, hold_reference, user_id,
        api_key_id, engine_id, queue, takes_turn, refund_policy, retry_of
    ) values (
        account, id, kind, subject, dedup_key, parent, credits, hold, user_id, api_key, id::text, queue,
        takes_turn, refund_policy, retry_of
    );
    if takes_turn then
        perform runs.admit(account);
    else
        perform runs.enqueue(account, id, 1, 1);
    end if;
    select * into found_run from public.runs as r where r.account_id = account and r.id = start.id;
    return row('started', found_run, locked.credits_available)::runs.answer;
end;
$$;

-- How far it is; never backwards. outcome: done | ended | unknown | fenced
create or replace function runs.progress(
    account uuid, id uuid, fence bigint, progress integer, step text, is_paused boolean default false
) returns runs.answer language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    run public.runs;
begin
    update public.runs as r
    set progress = greatest(r.progress, progress), current_step = step,
        status = case when is_paused then 'paused' else 'processing' end,
        -- One that goes to and fro keeps what it did last.
        steps = case
            when r.current_step is not distinct from step then r.steps
            else (case when jsonb_array_length(r.steps) >= 50 then r.steps - 0 else r.steps end)
                || jsonb_build_object('step', step, 'at', clock_timestamp())
        end
    where r.account_id = account and r.id = progress.id and r.fence = progress.fence
        and r.status in ('processing', 'paused')
    returning * into run;
    if found then
        return row('done', run, null)::runs.answer;
    end if;
    select * into run from public.runs as r where r.account_id = account and r.id = progress.id;
    return row(
        case when run.id is null then 'unknown' when runs.is_ended(run) then 'ended' else 'fenced' end,
        run, null)::runs.answer;
end;
$$;

-- What providers have charged for it so far, its children's included. Null: a price is not known.
create function runs.cost_of(account uuid, run_id uuid) returns bigint
language sql stable set search_path = '' as $$
    select case when count(*) filter (where c.cost is null) = 0 then coalesce(sum(c.cost), 0) end
    from (
        select a.cost_nanodollars as cost from public.ai_usage_logs as a where a.run_id = cost_of.run_id
        union all
        select s.cost_nanodollars from public.scrape_logs as s where s.run_id = cost_of.run_id
        union all
        select r.cost_nanodollars from public.runs as r
        where r.account_id = account and r.parent_id = cost_of.run_id
    ) as c
$$;

-- The run's row must be locked and not ended. What is charged is settled, what is not is released, in the
-- transaction that ends it; then the account's next run has its turn. A hold that somebody closed by hand
-- cannot be charged: then it has failed.
create or replace function runs.close(
    run public.runs, status text, outcome text, error text, credits_charged bigint
) returns runs.answer language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    paid ledger.outcome;
    is_paid boolean := true;
begin
    perform ledger.lock_account(run.account_id);
    if run.hold_reference is not null then
        if credits_charged > 0 then
            paid := ledger.settle_hold(run.account_id, run.hold_reference, credits_charged);
            is_paid := paid.outcome in ('done', 'repeated');
        else
            paid := ledger.release_hold(run.account_id, run.hold_reference);
        end if;
    end if;
    update public.runs as r
    set status = case when is_paid then status else 'failed' end,
        outcome = case when is_paid then outcome else 'internal_failure' end,
        error = case when is_paid then error else 'hold_closed' end,
        credits_charged = case when is_paid then credits_charged else 0 end,
        progress = case when is_paid and status = 'completed' then 100 else r.progress end,
        cost_nanodollars = runs.cost_of(r.account_id, r.id),
        ended_at = clock_timestamp()
    where r.account_id = run.account_id and r.id = run.id
    returning * into run;
    perform runs.admit(run.account_id);
    return row(
        case when is_paid then 'done' else 'unpaid' end, run, paid.credits_available)::runs.answer;
end;
$$;

-- Somebody wants it to stop, and with it its children. One that waits ends here and leaves the engine's
-- queue; one at work is told so by its executor's next heartbeat. Every row is locked before the account's
-- credits are.
-- outcome: cancelled | requested | repeated | ended | unknown
create or replace function runs.request_cancel(account uuid, id uuid) returns runs.answer
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    run public.runs := runs.lock_run(account, id);
    children uuid[];
    child uuid;
    answer runs.answer;
begin
    if run.id is null then
        return row('unknown', null, null)::runs.answer;
    elsif runs.is_ended(run) then
        return row('ended', run, null)::runs.answer;
    end if;
    children := array(
        select r.id from public.runs as r
        where r.account_id = account and r.parent_id = run.id
            and r.status in ('queued', 'processing', 'paused') and not r.should_cancel
        order by r.id
        for no key update
    );
    if not run.should_cancel then
        update public.runs as r set should_cancel = true
        where r.account_id = account and r.id = request_cancel.id returning * into run;
        answer.outcome := 'requested';
    else
        answer.outcome := 'repeated';
    end if;
    if run.status = 'queued' then
        -- As the engine itself cancels, but in this transaction. One that is being taken up this moment is
        -- found ended by its executor.
        update dbos.workflow_status as w
        set status = 'CANCELLED', owner_xid = null, queue_name = null, deduplication_id = null,
            updated_at = (extract(epoch from clock_timestamp()) * 1000)::bigint,
            completed_at = (extract(epoch from clock_timestamp()) * 1000)::bigint
        where w.workflow_uuid = run.engine_id and w.status in ('ENQUEUED', 'DELAYED');
        answer := runs.close(run, 'cancelled', 'cancelled_queued', null, 0);
        run := answer.run;
        answer.outcome := 'cancelled';
    end if;
    foreach child in array children loop
        perform runs.request_cancel(account, child);
    end loop;
    return row(answer.outcome, run, answer.credits_available)::runs.answer;
end;
$$;

-- Ends runs that nobody will ever finish, so nobody is charged: those whose work the engine no longer has
-- (deleted or cancelled there by hand, or given up), and those at work that have not moved for stuck_after.
-- Young ones are left alone, and those that wait, for their account's turn or for credits. Lets in what a
-- bigger plan has room for meanwhile.
drop function runs.close_lost(interval, integer);

create function runs.close_lost(older_than interval, stuck_after interval, runs_max integer)
returns integer language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    now_at constant timestamptz := clock_timestamp();
    lost public.runs[];
    run public.runs;
    waiting uuid;
begin
    if not pg_try_advisory_xact_lock(7305803404) then
        return 0;  -- somebody is at it
    end if;
    -- Every row before any account's credits. One that is locked is being moved.
    lost := array(
        select r from public.runs as r
        where r.status in ('queued', 'processing', 'paused') and r.admitted_at is not null
            and r.created_at < now_at - older_than and r.updated_at < now_at - older_than
            and (
                (r.status = 'processing' and r.updated_at < now_at - stuck_after)
                or not exists (
                    select from dbos.workflow_status as w
                    where w.workflow_uuid = r.engine_id and w.status in ('ENQUEUED', 'DELAYED', 'PENDING')
                )
            )
        order by r.created_at
        limit runs_max
        for no key update skip locked
    );
    foreach run in array lost loop
        if run.status = 'processing' and run.updated_at < now_at - stuck_after then
            perform runs.close(run, 'failed', 'timeout', 'timeout', 0);
        else
            perform runs.close(run, 'failed', 'internal_failure', 'lost', 0);
        end if;
    end loop;
    for waiting in
        select distinct r.account_id from public.runs as r
        where r.status = 'queued' and r.admitted_at is null
        order by r.account_id
    loop
        perform ledger.lock_account(waiting);
        perform runs.admit(waiting);
    end loop;
    return cardinality(lost);
end;
$$;

revoke all on function
    runs.enqueue(uuid, uuid, bigint, integer),
    runs.admit(uuid),
    runs.cost_of(uuid, uuid),
    runs.start(
        uuid, uuid, text, jsonb, bigint, text, text, boolean, text, uuid, uuid, uuid, integer, uuid),
    runs.close_lost(interval, interval, integer)
from public, anon, authenticated, service_role;
grant execute on function
    runs.start(
        uuid, uuid, text, jsonb, bigint, text, text, boolean, text, uuid, uuid, uuid, integer, uuid),
    runs.close_lost(interval, interval, integer)
to service_role;
