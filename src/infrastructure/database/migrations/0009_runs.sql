-- Runs: paid units of work that take longer than a request. Only the functions of schema runs start, end and charge a
-- run; the engine (schema dbos, migrated separately) executes it and knows only the ids of its run and account.
-- A run waits in its own row until its account has room for it, and only then in the engine's queue: however many runs
-- of an account wait, the engine's queue has no more of them than the plan allows. The transaction that ends a run
-- admits the next one.

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
    queue text not null default 'runs' check (length(queue) between 1 and 100),
    -- One that only waits for others, its own children for example, takes nobody's turn.
    takes_turn boolean not null default true,
    admitted_at timestamptz,  -- null: it waits for its account's turn
    refund_policy integer not null default 1 check (refund_policy > 0),
    cost_nanodollars bigint check (cost_nanodollars >= 0),  -- null: not known, or not ended
    -- Which step began when: [{"step": text, "at": instant}]. What follows a step tells how long it took.
    steps jsonb not null default '[]' check (jsonb_typeof(steps) = 'array'),
    retry_of uuid,
    turn integer check (turn > 0),  -- its place in the engine's queue
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
create index runs_in_turn on public.runs (account_id)
    where takes_turn and admitted_at is not null and status in ('queued', 'processing', 'paused');
create index runs_paused on public.runs (account_id, paused_at, id) where status = 'paused';
create index runs_by_retry on public.runs (account_id, retry_of) where retry_of is not null;

-- Those that the engine has: few, however many wait for their account's turn. It serves whoever looks for
-- the lost among them, and the health page.
create index runs_admitted on public.runs (admitted_at)
    where admitted_at is not null and status in ('queued', 'processing', 'paused');
create index runs_next_turn on public.runs (account_id, queue, turn)
    where status = 'queued' and admitted_at is not null;

-- For the times that steps usually take.
create index runs_completed on public.runs (kind, ended_at desc) where status = 'completed';
create index runs_light on public.runs (account_id, created_at desc)
    where kind in ('light_analysis', 'anonymous_analysis') and parent_id is null;

call private.protect_table('public.runs', 'select', 'select');

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

-- Whoever watches a run hears of every change: 'account run version'. Version 0: of one of its children's,
-- which count as its own. Told on commit, and to nobody when nobody listens. One that goes on waiting is not
-- worth a message: commits with one wait for each other, and the first is part of every start.
create function runs.tell_change() returns trigger language plpgsql set search_path = '' as $$
begin
    perform pg_notify('oslira_runs', concat_ws(' ', new.account_id, new.id, new.version));
    if new.parent_id is not null and new.ended_at is distinct from old.ended_at then
        perform pg_notify('oslira_runs', concat_ws(' ', new.account_id, new.parent_id, 0));
    end if;
    return null;
end;
$$;

create trigger tell_change after update on public.runs
    for each row when (
        new.status <> 'queued' or old.status <> 'queued' or new.should_cancel <> old.should_cancel
    )
    execute function runs.tell_change();

-- Outcomes rather than errors: the caller's transaction stays usable, and the answer carries the run.
create type runs.answer as (
    outcome text,
    run public.runs,
    credits_available bigint
);

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

-- Admission ---------------------------------------------------------------------------------------

-- The place of an account's next run in a queue; the lower, the sooner. An account's first comes right
-- behind the run that is next, however long others' runs have been waiting; each further one comes later by
-- its plan's step, and after the account's own. Places are seconds, and an hour later nobody gets one as
-- early any more: nobody waits for ever.
create function runs.turn_of(account uuid, queue text, at_work bigint, step_s integer) returns integer
language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    epoch constant timestamptz := '2026-01-01 00:00:00+00';
    overtaken_s_max constant integer := 3600;
    now_s constant integer := extract(epoch from clock_timestamp() - epoch);
    apart constant integer := 2 * step_s;  -- so that there is a place between any two of one account
    next_turn integer;
    own_last integer;
begin
    select min(w.priority) into next_turn from dbos.workflow_status as w
    where w.queue_name = turn_of.queue and w.status = 'ENQUEUED';
    select max(r.turn) into own_last from public.runs as r
    where r.account_id = account and r.queue = turn_of.queue
        and r.status = 'queued' and r.admitted_at is not null;
    return greatest(
        greatest(least(now_s, next_turn + 1), now_s - overtaken_s_max) + apart * (at_work::integer - 1),
        own_last + apart);
end;
$$;

-- What the tried run's steps brought is kept for the new one, so that only the others are done again. A step
-- that ended in a refusal, or was cancelled, begins its record with that word. What came after such a step
-- came of it, and belongs to another course of things; what ran beside it does not.
create function runs.copy_steps(from_engine_id text, to_engine_id text) returns void
language plpgsql set search_path = '' as $$
begin
    insert into dbos.operation_outputs (
        workflow_uuid, function_id, function_name, output, started_at_epoch_ms, completed_at_epoch_ms,
        serialization, application_name
    )
    with steps as (
        select o.*, o.error is not null
            or coalesce(o.output like '{"refusal":%' or o.output like '{"is_cancelled":%', false) as is_bad
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

-- Puts a run into the engine's queue, with what the run that it tries again has brought.
create function runs.enqueue(account uuid, id uuid, at_work bigint, step_s integer) returns void
language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    run public.runs;
    tried text;
begin
    update public.runs as r
    set admitted_at = clock_timestamp(), turn = runs.turn_of(account, r.queue, at_work, step_s)
    where r.account_id = account and r.id = enqueue.id returning * into run;
    perform dbos.enqueue_workflow(
        workflow_name => run.kind, queue_name => run.queue,
        positional_args => array[to_json(account), to_json(run.id)], workflow_id => run.engine_id,
        priority => run.turn);
    if run.retry_of is not null then
        -- What was found once may be otherwise by now: then it is looked at anew.
        select r.engine_id into tried from public.runs as r
        where r.account_id = account and r.id = run.retry_of
            and r.outcome not in ('private', 'not_found', 'restricted', 'icp_violation');
        perform runs.copy_steps(tried, run.engine_id);
    end if;
end;
$$;

-- Whether the account's credits are this transaction's now. For whoever would have to lock several, or to
-- lock them before something else: those must not wait.
create function runs.try_lock_account(account uuid) returns boolean
language plpgsql set search_path = '' as $$
begin
    perform from public.credit_accounts as a where a.account_id = account for no key update skip locked;
    return found;
end;
$$;

-- Lets the account's next runs into the engine's queue, as many as its plan has room for; none while it is
-- deleted. The account's credits must be locked: whoever admits for one account, admits alone. A waiting
-- run that somebody else has locked is being cancelled, and whoever does that admits in its place.
create function runs.admit(account uuid) returns void
language plpgsql set search_path = '' as $$
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
    where a.id = account and a.deleted_at is null;
    if not found then
        return;
    end if;
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

-- Start and progress ------------------------------------------------------------------------------

-- Credits set aside, the run's row and its place in the queue, all or nothing and in one round trip. The
-- same id again: the same run.
-- outcome: started | repeated | duplicate (the run in progress) | insufficient | key_capped | unknown_key
--          | test_key | unknown_account | unknown_type | wrong_sign | conflicting
create function runs.start(
    account uuid, id uuid, kind text, subject jsonb, credits bigint, transaction_type text, queue text,
    takes_turn boolean default true, dedup_key text default null, parent uuid default null,
    user_id uuid default null, api_key uuid default null, refund_policy integer default 1,
    retry_of uuid default null
) returns runs.answer language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
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

-- An executor takes the run up, for the first time or after another. outcome: begun (fence is its own now)
-- | ended | unknown | fenced (the executor was given up) | exhausted (begun, but too often before)
-- | superseded (the run has paused since, and engine_id is not its current work in the engine)
create function runs.begin(
    account uuid, id uuid, new_executor text, attempts_max integer, engine_id text default null
) returns runs.answer language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
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
) returns runs.answer language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    run public.runs;
begin
    update public.runs as r
    set progress = greatest(r.progress, progress), current_step = step,
        -- One that goes to and fro keeps what it did last.
        steps = case
            when r.current_step is not distinct from step then r.steps
            else (case when jsonb_array_length(r.steps) >= 50 then r.steps - 0 else r.steps end)
                || jsonb_build_object('step', step, 'at', clock_timestamp())
        end
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

-- End ---------------------------------------------------------------------------------------------

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
-- transaction that ends it. A hold that somebody closed by hand cannot be charged: then it has failed.
-- Whoever ends one, or several, admits afterwards.
create function runs.end_run(
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
    return row(
        case when is_paid then 'done' else 'unpaid' end, run, paid.credits_available)::runs.answer;
end;
$$;

-- The same, and then the account's next run has its turn.
create function runs.close(
    run public.runs, status text, outcome text, error text, credits_charged bigint
) returns runs.answer language plpgsql set search_path = '' as $$
declare
    answer runs.answer := runs.end_run(run, status, outcome, error, credits_charged);
begin
    perform runs.admit(run.account_id);
    return answer;
end;
$$;

-- The one end. outcome: done | repeated (the same end, by the same hand) | ended (another was first)
-- | fenced | unpaid (ended as failed: its hold was closed) | unknown
create function runs.finish(
    account uuid, id uuid, fence bigint, status text, outcome text, error text, credits_charged bigint
) returns runs.answer language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
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

grant execute on function
    runs.start(
        uuid, uuid, text, jsonb, bigint, text, text, boolean, text, uuid, uuid, uuid, integer, uuid),
    runs.begin(uuid, uuid, text, integer, text),
    runs.progress(uuid, uuid, bigint, integer, text),
    runs.finish(uuid, uuid, bigint, text, text, text, bigint)
to service_role;
