-- Runs: paid units of work that take longer than a request. Only the functions of schema runs start, end and charge a
-- run; the engine (schema dbos, migrated separately) executes it and knows only the ids of its run and account.
-- A run waits in its own row until its account has room for it, and only then in the engine's queue: however many
-- runs of an account wait, the engine's queue has no more of them than the plan allows. The transaction that ends a
-- run admits the next one.

create schema runs;
grant usage on schema runs to service_role;

create table public.runs (
    account_id uuid not null references public.accounts (id) on delete cascade,
    id uuid not null,
    kind text not null check (kind ~ '^[a-z][a-z0-9_]{0,39}$'),
    status text not null default 'queued'
        check (status in ('queued', 'processing', 'completed', 'failed', 'cancelled', 'paused')),
    progress smallint not null default 0 check (progress between 0 and 100),
    current_step text check (length(current_step) between 1 and 100),
    should_cancel boolean not null default false,
    parent_id uuid,
    subject jsonb not null check (jsonb_typeof(subject) = 'object'),  -- the input
    dedup_key text check (length(dedup_key) between 1 and 200),  -- only one run with this key is in progress
    outcome text check (outcome ~ '^[a-z][a-z0-9_]{0,59}$'),
    error text check (error ~ '^[a-z][a-z0-9_]{0,59}$'),
    credits_held bigint not null default 0 check (credits_held >= 0),
    credits_charged bigint not null default 0,
    hold_reference text,
    user_id uuid,
    api_key_id uuid,
    engine_id text not null check (length(engine_id) between 1 and 100),  -- the workflow's id in the engine
    executor text,  -- the worker that last started it
    attempt integer not null default 0 check (attempt >= 0),
    -- Rises with every attempt and when the executor is declared lost. A write states the fence of its attempt:
    -- a lost executor that still runs has an old one and changes nothing.
    fence bigint not null default 0 check (fence >= 0),
    created_at timestamptz not null default clock_timestamp(),
    started_at timestamptz,
    -- A paused run has no executor and no workflow in the engine until its account has credits_needed.
    paused_at timestamptz,
    credits_needed bigint check (credits_needed > 0),
    ended_at timestamptz,
    updated_at timestamptz not null default clock_timestamp(),
    version bigint not null default 1 check (version > 0),
    queue text not null default 'runs' check (length(queue) between 1 and 100),
    -- False for a run that only waits for its children.
    uses_concurrency_slot boolean not null default true,
    admitted_at timestamptz,  -- null: waits for a concurrency slot of its account
    refund_policy integer not null default 1 check (refund_policy > 0),
    cost_nanodollars bigint check (cost_nanodollars >= 0),  -- null: unknown, or not ended
    -- [{"step": text, "at": time of its start}]. The next entry's time ends a step.
    steps jsonb not null default '[]' check (jsonb_typeof(steps) = 'array'),
    retry_of uuid,
    queue_priority integer check (queue_priority > 0),  -- in the engine's queue; the lowest is next
    primary key (account_id, id),
    foreign key (account_id, parent_id) references public.runs (account_id, id) on delete cascade,
    foreign key (account_id, hold_reference)
        references public.credit_holds (account_id, reference) on delete cascade,
    foreign key (account_id, api_key_id)
        references public.api_keys (account_id, id) on delete set null (api_key_id),
    -- An ended run has an outcome and a time.
    check ((status in ('completed', 'failed', 'cancelled')) = (ended_at is not null)),
    check ((outcome is null) = (ended_at is null)),
    check (status <> 'paused' or (executor is null and paused_at is not null and credits_needed is not null)),
    check (error is null or status = 'failed'),
    check (credits_charged between 0 and credits_held),
    check (credits_charged = 0 or ended_at is not null),
    check ((hold_reference is null) = (credits_held = 0)),
    constraint runs_retry_of foreign key (account_id, retry_of)
        references public.runs (account_id, id) on delete set null (retry_of),
    check (admitted_at is not null or status in ('queued', 'failed', 'cancelled'))
) with (fillfactor = 70);

create index runs_by_age on public.runs (account_id, created_at desc, id desc);
create index runs_by_parent on public.runs (account_id, parent_id) where parent_id is not null;
create unique index runs_in_progress on public.runs (account_id, dedup_key)
    where dedup_key is not null and status in ('queued', 'processing', 'paused');
create index runs_at_work on public.runs (executor) where status in ('processing', 'paused');
create index runs_by_hold on public.runs (account_id, hold_reference) where hold_reference is not null;
create index runs_by_key on public.runs (account_id, api_key_id) where api_key_id is not null;
create index runs_waiting on public.runs (account_id, created_at, id)
    where status = 'queued' and admitted_at is null;
create index runs_in_concurrency_slots on public.runs (account_id)
    where uses_concurrency_slot and admitted_at is not null and status in ('queued', 'processing', 'paused');
create index runs_paused on public.runs (account_id, paused_at, id) where status = 'paused';
create index runs_by_retry on public.runs (account_id, retry_of) where retry_of is not null;

-- Runs in the engine are few, however many wait for admission. For the search for stalled runs and the health
-- check.
create index runs_admitted on public.runs (admitted_at)
    where admitted_at is not null and status in ('queued', 'processing', 'paused');
create index runs_by_queue_priority on public.runs (account_id, queue, queue_priority)
    where status = 'queued' and admitted_at is not null;

-- For the usual duration of steps.
create index runs_completed on public.runs (kind, ended_at desc) where status = 'completed';
create index runs_light on public.runs (account_id, created_at desc)
    where kind in ('light_analysis', 'anonymous_analysis') and parent_id is null;

call private.protect_table('public.runs', 'select', 'select');

-- A client's copy is current as long as the version is the same.
create function runs.mark_change() returns trigger language plpgsql set search_path = '' as $$
begin
    new.version := old.version + 1;
    new.updated_at := clock_timestamp();
    return new;
end;
$$;

create trigger mark_change before update on public.runs
    for each row when (old.* is distinct from new.*) execute function runs.mark_change();

-- Notifies subscribers of every change of a run: 'account run version'. Version 0: a child has ended, which
-- changes the parent's sums. Changes of a run that only waits are not sent: commits with a notification wait for
-- each other, and every start would have one.
create function runs.notify_change() returns trigger language plpgsql set search_path = '' as $$
begin
    perform pg_notify('oslira_runs', concat_ws(' ', new.account_id, new.id, new.version));
    if new.parent_id is not null and new.ended_at is distinct from old.ended_at then
        perform pg_notify('oslira_runs', concat_ws(' ', new.account_id, new.parent_id, 0));
    end if;
    return null;
end;
$$;

create trigger notify_change after update on public.runs
    for each row when (
        new.status <> 'queued' or old.status <> 'queued' or new.should_cancel <> old.should_cancel
    )
    execute function runs.notify_change();

-- An outcome instead of an exception: the caller's transaction stays usable, and the result has the run.
create type runs.result as (
    outcome text,
    run public.runs,
    credits_available bigint
);

create function runs.is_ended(run public.runs) returns boolean
language sql immutable set search_path = '' as $$
    select run.status in ('completed', 'failed', 'cancelled')
$$;

-- Every change of a run locks its row first and the account's credits second. runs.start locks the credits
-- first, but no existing run.
create function runs.lock_run(account uuid, id uuid) returns public.runs
language sql set search_path = '' as $$
    select * from public.runs as r where r.account_id = account and r.id = lock_run.id for no key update
$$;

-- Admission ---------------------------------------------------------------------------------------

-- The queue priority of an account's next run; the lowest number is next. The account's first run comes directly
-- after the run at the head of the queue, however long the runs of others have waited; each further run comes
-- later by the plan's step, after the account's own runs. Priorities are seconds, and a run cannot get one that
-- is older than an hour, so no run waits for ever.
create function runs.next_queue_priority(account uuid, queue text, slots_used bigint, step_s integer) returns integer
language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    epoch constant timestamptz := '2026-01-01 00:00:00+00';
    priority_age_s_max constant integer := 3600;
    now_s constant integer := extract(epoch from clock_timestamp() - epoch);
    spacing constant integer := 2 * step_s;  -- leaves a free priority between two runs of one account
    first_priority integer;
    own_last_priority integer;
begin
    select min(w.priority) into first_priority from dbos.workflow_status as w
    where w.queue_name = next_queue_priority.queue and w.status = 'ENQUEUED';
    select max(r.queue_priority) into own_last_priority from public.runs as r
    where r.account_id = account and r.queue = next_queue_priority.queue
        and r.status = 'queued' and r.admitted_at is not null;
    return greatest(
        greatest(least(now_s, first_priority + 1), now_s - priority_age_s_max) + spacing * (slots_used::integer - 1),
        own_last_priority + spacing);
end;
$$;

-- Copies the results of the retried run's steps to the new run, so that only the other steps are executed again.
-- The record of a step that raised a domain error or was cancelled begins with that word. Steps that started
-- after such a step ended depend on it and are not copied; steps that ran in parallel with it are.
create function runs.copy_steps(from_engine_id text, to_engine_id text) returns void
language plpgsql set search_path = '' as $$
begin
    insert into dbos.operation_outputs (
        workflow_uuid, function_id, function_name, output, started_at_epoch_ms, completed_at_epoch_ms,
        serialization, application_name
    )
    with steps as (
        select o.*, o.error is not null
            or coalesce(o.output like '{"failure":%' or o.output like '{"is_cancelled":%', false) as is_bad
        from dbos.operation_outputs as o where o.workflow_uuid = from_engine_id
    ), first_bad as (
        select function_id, completed_at_epoch_ms from steps where is_bad order by function_id limit 1
    )
    select to_engine_id, s.function_id, s.function_name, s.output, s.started_at_epoch_ms,
        s.completed_at_epoch_ms, s.serialization, s.application_name
    from steps as s left join first_bad as b on true
    where not s.is_bad and s.child_workflow_id is null
        and (
            b.function_id is null or s.function_id < b.function_id
            or s.started_at_epoch_ms < b.completed_at_epoch_ms
        );
end;
$$;

-- Enqueues a run in the engine, with the step results of the run that it retries.
create function runs.enqueue(account uuid, id uuid, slots_used bigint, step_s integer) returns void
language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    run public.runs;
    retried_engine_id text;
begin
    update public.runs as r
    set admitted_at = clock_timestamp(),
        queue_priority = runs.next_queue_priority(account, r.queue, slots_used, step_s)
    where r.account_id = account and r.id = enqueue.id returning * into run;
    perform dbos.enqueue_workflow(
        workflow_name => run.kind, queue_name => run.queue,
        positional_args => array[to_json(account), to_json(run.id)], workflow_id => run.engine_id,
        priority => run.queue_priority);
    if run.retry_of is not null then
        -- These outcomes describe the profile, which may have changed since, so nothing is copied.
        select r.engine_id into retried_engine_id from public.runs as r
        where r.account_id = account and r.id = run.retry_of
            and r.outcome not in ('private', 'not_found', 'restricted', 'icp_violation');
        perform runs.copy_steps(retried_engine_id, run.engine_id);
    end if;
end;
$$;

-- Locks the account's credits without waiting; false if another transaction has them. For transactions that lock
-- several accounts, or other rows after the credits: waiting could deadlock.
create function runs.try_lock_account(account uuid) returns boolean
language plpgsql set search_path = '' as $$
begin
    perform from public.credit_accounts as a where a.account_id = account for no key update skip locked;
    return found;
end;
$$;

-- Admits the account's next runs to the engine's queue, as many as its plan allows; none while the account is
-- deleted. The account's credits must be locked, so that only one transaction admits. A waiting run that is
-- locked is being cancelled, and the cancelling transaction admits the next one.
create function runs.admit(account uuid) returns void
language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    plan public.plans;
    slots_used bigint;
    next_id uuid;
begin
    -- The common case: no run waits.
    if not exists (
        select from public.runs as r
        where r.account_id = account and r.status = 'queued' and r.admitted_at is null
    ) then
        return;
    end if;
    select p.* into plan from public.accounts as a join public.plans as p on p.name = a.plan
    where a.id = account and a.deleted_at is null;
    if not found then
        return;
    end if;
    select count(*) into slots_used from public.runs as r
    where r.account_id = account and r.uses_concurrency_slot and r.admitted_at is not null
        and r.status in ('queued', 'processing', 'paused');
    for next_id in
        select r.id from public.runs as r
        where r.account_id = account and r.status = 'queued' and r.admitted_at is null
        order by r.created_at, r.id
        limit greatest(plan.runs_at_once - slots_used, 0)
        for no key update skip locked
    loop
        slots_used := slots_used + 1;
        perform runs.enqueue(account, next_id, slots_used, plan.queue_priority);
    end loop;
end;
$$;

-- Start and progress ------------------------------------------------------------------------------

-- Holds the credits, inserts the run and enqueues it, all or nothing and in one round trip. The same id again
-- returns the same run.
-- outcome: started | repeated | duplicate (the run in progress) | insufficient | key_capped | unknown_key |
-- test_key | unknown_account | unknown_type | wrong_sign | conflicting
create function runs.start(
    account uuid, id uuid, kind text, subject jsonb, credits bigint, transaction_type text, queue text,
    uses_concurrency_slot boolean default true, dedup_key text default null, parent uuid default null,
    user_id uuid default null, api_key uuid default null, refund_policy integer default 1,
    retry_of uuid default null
) returns runs.result language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    -- Concurrent starts of one account wait here, so that the lookups below stay valid.
    locked public.credit_accounts := ledger.lock_account(account);
    found_run public.runs;
    held ledger.outcome;
    hold text := case when credits > 0 then 'run:' || id end;
begin
    if locked.account_id is null then
        return row('unknown_account', null, null)::runs.result;
    end if;
    select * into found_run from public.runs as r where r.account_id = account and r.id = start.id;
    if found then
        return row(
            case when found_run.kind = kind and found_run.subject = subject
                and found_run.credits_held = credits then 'repeated' else 'conflicting' end,
            found_run, locked.credits_available)::runs.result;
    end if;
    select * into found_run from public.runs as r
    where r.account_id = account and r.dedup_key = start.dedup_key
        and r.status in ('queued', 'processing', 'paused');
    if found then
        return row('duplicate', found_run, locked.credits_available)::runs.result;
    end if;
    if credits > 0 then
        held := ledger.place_hold(account, credits, hold, transaction_type, null, api_key);
        if held.outcome <> 'done' then
            return row(
                case held.outcome when 'repeated' then 'conflicting' else held.outcome end,
                null, held.credits_available)::runs.result;
        end if;
        locked.credits_available := held.credits_available;
    end if;
    insert into public.runs (
        account_id, id, kind, subject, dedup_key, parent_id, credits_held, hold_reference, user_id,
        api_key_id, engine_id, queue, uses_concurrency_slot, refund_policy, retry_of
    ) values (
        account, id, kind, subject, dedup_key, parent, credits, hold, user_id, api_key, id::text, queue,
        uses_concurrency_slot, refund_policy, retry_of
    );
    if uses_concurrency_slot then
        perform runs.admit(account);
    else
        perform runs.enqueue(account, id, 1, 1);
    end if;
    select * into found_run from public.runs as r where r.account_id = account and r.id = start.id;
    return row('started', found_run, locked.credits_available)::runs.result;
end;
$$;

-- Starts an attempt. outcome: begun (the fence is the attempt's) | ended | unknown | fenced (the executor was
-- declared lost) | exhausted (begun, but attempts_max is exceeded) | superseded (the run has paused since, and
-- engine_id is not its current workflow)
create function runs.begin(
    account uuid, id uuid, new_executor text, attempts_max integer, engine_id text default null
) returns runs.result language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    run public.runs := runs.lock_run(account, id);
begin
    if run.id is null then
        return row('unknown', null, null)::runs.result;
    elsif runs.is_ended(run) then
        return row('ended', run, null)::runs.result;
    elsif run.engine_id <> engine_id then
        return row('superseded', run, null)::runs.result;
    elsif not exists (
        -- Checked after the lock, so that an executor that was declared lost before another one began is
        -- rejected.
        select from traffic.workers as w where w.executor = new_executor and w.stopped_at is null
    ) then
        return row('fenced', run, null)::runs.result;
    end if;
    update public.runs as r
    set status = 'processing', executor = new_executor, attempt = r.attempt + 1, fence = r.fence + 1,
        started_at = coalesce(r.started_at, clock_timestamp())
    where r.account_id = account and r.id = run.id
    returning * into run;
    return row(
        case when run.attempt > attempts_max then 'exhausted' else 'begun' end, run, null)::runs.result;
end;
$$;

-- Records progress, which never decreases. outcome: done | ended | unknown | fenced
create function runs.progress(
    account uuid, id uuid, fence bigint, progress integer, step text
) returns runs.result language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    run public.runs;
begin
    update public.runs as r
    set progress = greatest(r.progress, progress), current_step = step,
        -- A run that alternates between steps keeps the last 50.
        steps = case
            when r.current_step is not distinct from step then r.steps
            else (case when jsonb_array_length(r.steps) >= 50 then r.steps - 0 else r.steps end)
                || jsonb_build_object('step', step, 'at', clock_timestamp())
        end
    where r.account_id = account and r.id = progress.id and r.fence = progress.fence
        and r.status = 'processing'
    returning * into run;
    if found then
        return row('done', run, null)::runs.result;
    end if;
    select * into run from public.runs as r where r.account_id = account and r.id = progress.id;
    return row(
        case when run.id is null then 'unknown' when runs.is_ended(run) then 'ended' else 'fenced' end,
        run, null)::runs.result;
end;
$$;

-- End ---------------------------------------------------------------------------------------------

-- The provider costs of the run and its children so far. Null: a price is unknown.
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

-- Ends a run, whose row must be locked, and settles or releases its hold in the same transaction. If the hold
-- was closed manually, it cannot be charged, and the run fails. The caller admits the next runs afterwards.
create function runs.end_run(
    run public.runs, status text, outcome text, error text, credits_charged bigint
) returns runs.result language plpgsql set search_path = '' as $$
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
    return row(
        case when is_paid then 'done' else 'unpaid' end, run, paid.credits_available)::runs.result;
end;
$$;

-- Ends a run as above and admits the account's next run.
create function runs.end_and_admit(
    run public.runs, status text, outcome text, error text, credits_charged bigint
) returns runs.result language plpgsql set search_path = '' as $$
declare
    result runs.result := runs.end_run(run, status, outcome, error, credits_charged);
begin
    perform runs.admit(run.account_id);
    return result;
end;
$$;

-- Ends a run once. outcome: done | repeated (the same end by the same attempt) | ended (another end was first) |
-- fenced | unpaid (ended as failed: its hold was closed) | unknown
create function runs.finish(
    account uuid, id uuid, fence bigint, status text, outcome text, error text, credits_charged bigint
) returns runs.result language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    run public.runs := runs.lock_run(account, id);
begin
    if run.id is null then
        return row('unknown', null, null)::runs.result;
    elsif runs.is_ended(run) then
        return row(
            case when run.fence = fence and run.status = status and run.outcome = outcome
                and run.credits_charged = credits_charged then 'repeated' else 'ended' end,
            run, null)::runs.result;
    elsif run.fence <> fence or run.status = 'queued' then
        return row('fenced', run, null)::runs.result;
    end if;
    assert status in ('completed', 'failed', 'cancelled'), 'a final status is required';
    return runs.end_and_admit(run, status, outcome, error, credits_charged);
end;
$$;

grant execute on function
    runs.start(
        uuid, uuid, text, jsonb, bigint, text, text, boolean, text, uuid, uuid, uuid, integer, uuid),
    runs.begin(uuid, uuid, text, integer, text),
    runs.progress(uuid, uuid, bigint, integer, text),
    runs.finish(uuid, uuid, bigint, text, text, text, bigint)
to service_role;
