-- Runs: paid pieces of work that take longer than a request. A run is started, ended and paid for by the
-- functions of schema runs alone; what does the work is the engine (schema dbos, migrated beside this one),
-- which knows a run by its id and nothing else of the tenant's.

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
    subject jsonb not null check (jsonb_typeof(subject) = 'object'),  -- what it was asked to do
    dedup_key text check (length(dedup_key) between 1 and 200),  -- of two alike, one is in progress
    outcome text check (outcome ~ '^[a-z][a-z0-9_]{0,59}$'),
    error text check (error ~ '^[a-z][a-z0-9_]{0,59}$'),
    credits_held bigint not null default 0 check (credits_held >= 0),
    credits_charged bigint not null default 0,
    hold_reference text,
    user_id uuid,
    api_key_id uuid,
    engine_id text not null check (length(engine_id) between 1 and 100),  -- the engine's name for its work
    executor text,  -- the process that works on it, or did when it was last heard of
    attempt integer not null default 0 check (attempt >= 0),
    -- Rises with every attempt and when an executor is given up. Who writes shows the fence it was given:
    -- one that was given up, and does not know it yet, changes nothing.
    fence bigint not null default 0 check (fence >= 0),
    created_at timestamptz not null default clock_timestamp(),
    started_at timestamptz,
    -- A paused run has no executor and no work in the engine until its account has credits_needed.
    paused_at timestamptz,
    credits_needed bigint check (credits_needed > 0),
    ended_at timestamptz,
    updated_at timestamptz not null default clock_timestamp(),
    version bigint not null default 1 check (version > 0),
    primary key (account_id, id),
    foreign key (account_id, parent_id) references public.runs (account_id, id) on delete cascade,
    foreign key (account_id, hold_reference)
        references public.credit_holds (account_id, reference) on delete cascade,
    foreign key (account_id, api_key_id)
        references public.api_keys (account_id, id) on delete set null (api_key_id),
    -- Ends are exclusive, and say which they are.
    check ((status in ('completed', 'failed', 'cancelled')) = (ended_at is not null)),
    check ((outcome is null) = (ended_at is null)),
    check (status <> 'paused' or (executor is null and paused_at is not null and credits_needed is not null)),
    check (error is null or status = 'failed'),
    check (credits_charged between 0 and credits_held),
    check (credits_charged = 0 or ended_at is not null),
    check ((hold_reference is null) = (credits_held = 0))
) with (fillfactor = 70);

create index runs_by_age on public.runs (account_id, created_at desc, id desc);
create index runs_by_parent on public.runs (account_id, parent_id) where parent_id is not null;
create unique index runs_in_progress on public.runs (account_id, dedup_key)
    where dedup_key is not null and status in ('queued', 'processing', 'paused');
create index runs_queued on public.runs (account_id, created_at) where status = 'queued';
create index runs_at_work on public.runs (executor) where status in ('processing', 'paused');
create index runs_unended on public.runs (created_at) where status in ('queued', 'processing', 'paused');
create index runs_by_hold on public.runs (account_id, hold_reference) where hold_reference is not null;
create index runs_by_key on public.runs (account_id, api_key_id) where api_key_id is not null;

-- What a client was told stays true as long as the version does.
create function runs.mark_change() returns trigger language plpgsql set search_path = '' as $$
begin
    new.version := old.version + 1;
    new.updated_at := clock_timestamp();
    return new;
end;
$$;

create trigger mark_change before update on public.runs
    for each row when (old.* is distinct from new.*) execute function runs.mark_change();

alter table public.runs enable row level security;
alter table public.runs force row level security;
create policy members_read on public.runs for select to app_user
    using (account_id = any (array(select private.member_account_ids())));
revoke all on public.runs from public, anon, authenticated, service_role;
grant select on public.runs to app_user, service_role;

-- Processes that work, as far as they are heard of. Times are the database's: nobody's clock but one.
create table traffic.workers (
    executor text primary key check (length(executor) between 1 and 100),
    host text not null check (length(host) <= 255),
    queues text[] not null,
    started_at timestamptz not null default clock_timestamp(),
    heartbeat_at timestamptz not null default clock_timestamp(),
    -- Since when its heartbeats have come without a gap. Only who was steady itself may say of another
    -- that it was not: when the database was away for everybody, nobody is dead.
    steady_since timestamptz not null default clock_timestamp(),
    is_draining boolean not null default false,
    gone_at timestamptz  -- left, or given up; it does not come back under this name
);

alter table traffic.workers enable row level security;
alter table traffic.workers force row level security;
revoke all on traffic.workers from public, anon, authenticated, service_role;
grant select on traffic.workers to service_role;

-- A run's life ------------------------------------------------------------------------------------

-- Outcomes rather than errors: the caller's transaction stays usable, and the answer carries the run.
create type runs.answer as (
    outcome text,
    run public.runs,
    credits_available bigint
);

-- Credits set aside, the run's row and its work in the engine's queue, all or nothing and in one round
-- trip. The same id again: the same run. priority: the lower, the sooner, and never 0, which would be
-- before all others.
-- outcome: started | repeated | duplicate (the run in progress) | insufficient | key_capped | unknown_key
--          | unknown_account | unknown_type | wrong_sign | conflicting
create function runs.start(
    account uuid, id uuid, kind text, subject jsonb, credits bigint, transaction_type text, queue text,
    priority integer, partition text default null, dedup_key text default null, parent uuid default null,
    user_id uuid default null, api_key uuid default null
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
    assert priority > 0, 'an unset priority comes before every other';
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
        api_key_id, engine_id
    ) values (
        account, id, kind, subject, dedup_key, parent, credits, hold, user_id, api_key, id::text
    ) returning * into found_run;
    perform dbos.enqueue_workflow(
        workflow_name => kind, queue_name => queue,
        positional_args => array[to_json(account), to_json(id)], workflow_id => id::text,
        priority => priority, queue_partition_key => partition);
    return row('started', found_run, locked.credits_available)::runs.answer;
end;
$$;

create function runs.is_ended(run public.runs) returns boolean
language sql immutable set search_path = '' as $$
    select run.status in ('completed', 'failed', 'cancelled')
$$;

-- Every change of a run starts with its row locked. Whoever also needs the account's credits locks those
-- second; runs.start, which has them first, locks no row that exists.
create function runs.lock_run(account uuid, id uuid) returns public.runs
language sql set search_path = '' as $$
    select * from public.runs as r where r.account_id = account and r.id = lock_run.id for no key update
$$;

-- An executor takes the run up, for the first time or after another. outcome: begun (fence is its own now)
-- | ended | unknown | fenced (the executor was given up) | exhausted (begun, but too often before)
-- | superseded (the run has paused since, and engine_id is not its current work in the engine)
create function runs.begin(
    account uuid, id uuid, new_executor text, attempts_max integer, engine_id text default null
) returns runs.answer language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    run public.runs := runs.lock_run(account, id);
begin
    if run.id is null then
        return row('unknown', null, null)::runs.answer;
    elsif runs.is_ended(run) then
        return row('ended', run, null)::runs.answer;
    elsif run.engine_id <> engine_id then
        return row('superseded', run, null)::runs.answer;
    elsif not exists (
        -- After the lock: who was given up before another began finds that here.
        select from traffic.workers as w where w.executor = new_executor and w.gone_at is null
    ) then
        return row('fenced', run, null)::runs.answer;
    end if;
    update public.runs as r
    set status = 'processing', executor = new_executor, attempt = r.attempt + 1, fence = r.fence + 1,
        started_at = coalesce(r.started_at, clock_timestamp())
    where r.account_id = account and r.id = run.id
    returning * into run;
    return row(
        case when run.attempt > attempts_max then 'exhausted' else 'begun' end, run, null)::runs.answer;
end;
$$;

-- How far it is; never backwards. outcome: done | ended | unknown | fenced
create function runs.progress(
    account uuid, id uuid, fence bigint, progress integer, step text
) returns runs.answer language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    run public.runs;
begin
    update public.runs as r
    set progress = greatest(r.progress, progress), current_step = step
    where r.account_id = account and r.id = progress.id and r.fence = progress.fence
        and r.status = 'processing'
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

-- The run's row must be locked and not ended. What is charged is settled, what is not is released, in the
-- transaction that ends it. A hold that somebody closed by hand cannot be charged: then it has failed.
create function runs.close(
    run public.runs, status text, outcome text, error text, credits_charged bigint
) returns runs.answer language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    paid ledger.outcome;
    is_paid boolean := true;
begin
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
        outcome = case when is_paid then outcome else 'hold_closed' end,
        error = case when is_paid then error else 'hold_closed' end,
        credits_charged = case when is_paid then credits_charged else 0 end,
        progress = case when is_paid and status = 'completed' then 100 else r.progress end,
        ended_at = clock_timestamp()
    where r.account_id = run.account_id and r.id = run.id
    returning * into run;
    return row(
        case when is_paid then 'done' else 'unpaid' end, run, paid.credits_available)::runs.answer;
end;
$$;

-- The one end. outcome: done | repeated (the same end, by the same hand) | ended (another was first)
-- | fenced | unpaid (ended as failed: its hold was closed) | unknown
create function runs.finish(
    account uuid, id uuid, fence bigint, status text, outcome text, error text, credits_charged bigint
) returns runs.answer language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    run public.runs := runs.lock_run(account, id);
begin
    if run.id is null then
        return row('unknown', null, null)::runs.answer;
    elsif runs.is_ended(run) then
        return row(
            case when run.fence = fence and run.status = status and run.outcome = outcome
                and run.credits_charged = credits_charged then 'repeated' else 'ended' end,
            run, null)::runs.answer;
    elsif run.fence <> fence or run.status = 'queued' then
        return row('fenced', run, null)::runs.answer;
    end if;
    assert status in ('completed', 'failed', 'cancelled'), 'an end is one of three';
    return runs.close(run, status, outcome, error, credits_charged);
end;
$$;

-- Somebody wants it to stop. One that waits ends here and leaves the engine's queue; one at work is told
-- so by its executor's next heartbeat. outcome: cancelled | requested | repeated | ended | unknown
create function runs.request_cancel(account uuid, id uuid) returns runs.answer
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    run public.runs := runs.lock_run(account, id);
    answer runs.answer;
begin
    if run.id is null then
        return row('unknown', null, null)::runs.answer;
    elsif runs.is_ended(run) then
        return row('ended', run, null)::runs.answer;
    elsif run.status = 'queued' then
        -- As the engine itself cancels, but in this transaction. One that is being taken up this moment is
        -- found ended by its executor.
        update dbos.workflow_status as w
        set status = 'CANCELLED', owner_xid = null, queue_name = null, deduplication_id = null,
            updated_at = (extract(epoch from clock_timestamp()) * 1000)::bigint,
            completed_at = (extract(epoch from clock_timestamp()) * 1000)::bigint
        where w.workflow_uuid = run.engine_id and w.status in ('ENQUEUED', 'DELAYED');
        update public.runs as r set should_cancel = true
        where r.account_id = account and r.id = request_cancel.id returning * into run;
        answer := runs.close(run, 'cancelled', 'cancelled_in_queue', null, 0);
        return row('cancelled', answer.run, answer.credits_available)::runs.answer;
    elsif run.should_cancel then
        return row('repeated', run, null)::runs.answer;
    end if;
    update public.runs as r set should_cancel = true
    where r.account_id = account and r.id = request_cancel.id returning * into run;
    return row('requested', run, null)::runs.answer;
end;
$$;

-- Ends runs whose work the engine no longer has: deleted or cancelled there by hand, or given up. Nobody
-- will ever finish those, so nobody is charged. Young ones are left alone.
create function runs.close_lost(older_than interval, runs_max integer) returns integer
language plpgsql security definer set search_path = '' as $$
declare
    lost record;
    run public.runs;
    closed integer := 0;
begin
    for lost in
        select r.account_id, r.id from public.runs as r
        where r.status in ('queued', 'processing', 'paused')
            and r.created_at < clock_timestamp() - older_than
            and r.updated_at < clock_timestamp() - older_than
            and not exists (
                select from dbos.workflow_status as w
                where w.workflow_uuid = r.engine_id and w.status in ('ENQUEUED', 'DELAYED', 'PENDING')
            )
        order by r.created_at limit runs_max
    loop
        run := runs.lock_run(lost.account_id, lost.id);
        if run.id is not null and not runs.is_ended(run) then
            perform runs.close(run, 'failed', 'lost', 'lost', 0);
            closed := closed + 1;
        end if;
    end loop;
    return closed;
end;
$$;

-- Workers -----------------------------------------------------------------------------------------

create function traffic.enlist(executor text, host text, queues text[]) returns void
language sql security definer set search_path = '' as $$
    insert into traffic.workers (executor, host, queues) values (executor, host, queues)
$$;

create function traffic.is_alive(executor text) returns boolean
language sql stable set search_path = '' as $$
    select exists (
        select from traffic.workers as w where w.executor = is_alive.executor and w.gone_at is null)
$$;

-- Raises the fence of every run whose executor is gone.
create function runs.fence_off() returns void language sql set search_path = '' as $$
    update public.runs as r set fence = r.fence + 1, executor = null
    where r.status in ('processing', 'paused') and r.executor is not null
        and not traffic.is_alive(r.executor)
$$;

-- One heartbeat. is_alive: false when it was given up; then it must stop. cancels: which of its runs
-- should stop. orphans: executors that are gone and have left work with the engine, for this one to hand
-- on; told to one at a time, and again until it is done.
create function traffic.beat(
    executor text, gone_after interval, is_draining boolean,
    out is_alive boolean, out cancels uuid[], out orphans text[]
) language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    now_at timestamptz := clock_timestamp();
    steady_since timestamptz;
begin
    update traffic.workers as w
    set heartbeat_at = now_at, is_draining = beat.is_draining,
        steady_since = case
            when w.heartbeat_at < now_at - gone_after then now_at else w.steady_since end
    where w.executor = beat.executor and w.gone_at is null
    returning w.steady_since into steady_since;
    is_alive := found;
    cancels := '{}';
    orphans := '{}';
    if not is_alive then
        return;
    end if;
    cancels := array(
        select r.id from public.runs as r
        where r.executor = beat.executor and r.status in ('processing', 'paused') and r.should_cancel
    );
    if steady_since > now_at - gone_after or not pg_try_advisory_xact_lock(7305803402) then
        return;
    end if;
    update traffic.workers as w set gone_at = now_at
    where w.gone_at is null and w.heartbeat_at < now_at - gone_after;
    perform runs.fence_off();
    orphans := array(
        select distinct s.executor_id from dbos.workflow_status as s
        where s.status = 'PENDING' and not traffic.is_alive(s.executor_id)
    );
    delete from traffic.workers as w where w.gone_at < now_at - interval '1 hour';
end;
$$;

-- It goes in good order: its runs are others' from this moment.
create function traffic.leave(executor text) returns void
language plpgsql security definer set search_path = '' as $$
begin
    update traffic.workers as w set gone_at = clock_timestamp()
    where w.executor = leave.executor and w.gone_at is null;
    perform runs.fence_off();
end;
$$;

-- Who may execute what ----------------------------------------------------------------------------

do $$
declare
    routine regprocedure;
begin
    for routine in
        select p.oid::regprocedure from pg_proc as p
        where p.pronamespace = 'runs'::regnamespace
            or (p.pronamespace = 'traffic'::regnamespace
                and p.proname in ('enlist', 'is_alive', 'beat', 'leave'))
    loop
        execute format(
            'revoke all on function %s from public, anon, authenticated, service_role', routine);
    end loop;
end;
$$;

grant execute on function
    runs.start(uuid, uuid, text, jsonb, bigint, text, text, integer, text, text, uuid, uuid, uuid),
    runs.begin(uuid, uuid, text, integer, text),
    runs.progress(uuid, uuid, bigint, integer, text),
    runs.finish(uuid, uuid, bigint, text, text, text, bigint),
    runs.request_cancel(uuid, uuid),
    runs.close_lost(interval, integer),
    traffic.enlist(text, text, text[]),
    traffic.beat(text, interval, boolean),
    traffic.leave(text)
to service_role;
