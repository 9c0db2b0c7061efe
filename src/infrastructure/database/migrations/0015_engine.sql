-- The engine's upkeep: nobody waits for anybody in a circle, an account that changes its plan or is deleted
-- is heeded at once, and what the engine remembers of tenants' work has an end.

-- Those that the engine has: few, however many wait for their account's turn. It serves whoever looks for
-- the lost among them, and the health page.
drop index public.runs_unended;
create index runs_admitted on public.runs (admitted_at)
    where admitted_at is not null and status in ('queued', 'processing', 'paused');

-- Whose turn it is -------------------------------------------------------------------------------

alter table public.runs add column turn integer check (turn > 0);  -- its place in the engine's queue
create index runs_next_turn on public.runs (account_id, queue, turn)
    where status = 'queued' and admitted_at is not null;

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

-- Puts a run into the engine's queue, with what the run that it tries again has brought.
create or replace function runs.enqueue(account uuid, id uuid, at_work bigint, step_s integer) returns void
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
        select r.engine_id into tried from public.runs as r
        where r.account_id = account and r.id = run.retry_of;
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

-- Raises the fence of every run whose executor is gone. One that somebody has locked is left for the next
-- heartbeat: to wait for it, with others locked, could be to wait for each other. Until then nothing is
-- lost: whoever takes it up raises its fence as well.
create or replace function runs.fence_off() returns void language sql set search_path = '' as $$
    update public.runs as r set fence = r.fence + 1, executor = null
    from (
        select f.account_id, f.id from public.runs as f
        where f.status in ('processing', 'paused') and f.executor is not null
            and not exists (
                select from traffic.workers as w where w.executor = f.executor and w.gone_at is null)
        for no key update of f skip locked
    ) as found
    where r.account_id = found.account_id and r.id = found.id
$$;

-- Lets the account's next runs into the engine's queue, as many as its plan has room for; none while it is
-- deleted. The account's credits must be locked: whoever admits for one account, admits alone. A waiting
-- run that somebody else has locked is being cancelled, and whoever does that admits in its place.
create or replace function runs.admit(account uuid) returns void
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
create or replace function runs.close(
    run public.runs, status text, outcome text, error text, credits_charged bigint
) returns runs.answer language plpgsql set search_path = '' as $$
declare
    answer runs.answer := runs.end_run(run, status, outcome, error, credits_charged);
begin
    perform runs.admit(run.account_id);
    return answer;
end;
$$;

-- A run and its children: those that wait end here and leave the engine's queue; those at work are told so
-- by their executor's next heartbeat. Every row is locked before the account's credits are. Nobody is
-- admitted meanwhile: it might be the next one to be cancelled.
-- outcome: cancelled | requested | repeated | ended | unknown
create function runs.cancel_tree(account uuid, id uuid) returns runs.answer
language plpgsql set search_path = '' as $$
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
        where r.account_id = account and r.id = cancel_tree.id returning * into run;
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
        answer := runs.end_run(run, 'cancelled', 'cancelled_queued', null, 0);
        run := answer.run;
        answer.outcome := 'cancelled';
    end if;
    foreach child in array children loop
        perform runs.cancel_tree(account, child);
    end loop;
    return row(answer.outcome, run, answer.credits_available)::runs.answer;
end;
$$;

-- Somebody wants it to stop, and with it its children. outcome: as above
create or replace function runs.request_cancel(account uuid, id uuid) returns runs.answer
language plpgsql security definer set search_path = '' as $$
declare
    answer runs.answer := runs.cancel_tree(account, id);
begin
    if answer.outcome not in ('ended', 'unknown') then
        perform ledger.lock_account(account);
        perform runs.admit(account);
    end if;
    return answer;
end;
$$;

-- Ends runs that nobody will ever finish, so nobody is charged: those whose work the engine no longer has
-- (deleted or cancelled there by hand, or given up), and those at work that have not moved for stuck_after.
-- Those it has had for less than older_than are left alone, and those that wait, for their account's turn
-- or for credits. Then accounts that have room and somebody waiting get what they were not given: a plan
-- was changed. It waits for nobody: what is locked is being moved, or looked at again the next time.
create or replace function runs.close_lost(older_than interval, stuck_after interval, runs_max integer)
returns integer language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    now_at constant timestamptz := clock_timestamp();
    lost public.runs[];
    run public.runs;
    waiting uuid;
    closed integer := 0;
begin
    if not pg_try_advisory_xact_lock(7305803404) then
        return 0;  -- somebody is at it
    end if;
    lost := array(
        select r from public.runs as r
        where r.status in ('queued', 'processing', 'paused') and r.admitted_at < now_at - older_than
            and r.updated_at < now_at - older_than
            and (
                (r.status = 'processing' and r.updated_at < now_at - stuck_after)
                or not exists (
                    select from dbos.workflow_status as w
                    where w.workflow_uuid = r.engine_id and w.status in ('ENQUEUED', 'DELAYED', 'PENDING')
                )
            )
        order by r.admitted_at
        limit runs_max
        for no key update of r skip locked
    );
    foreach run in array lost loop
        continue when not runs.try_lock_account(run.account_id);
        if run.status = 'processing' and run.updated_at < now_at - stuck_after then
            perform runs.close(run, 'failed', 'timeout', 'timeout', 0);
        else
            perform runs.close(run, 'failed', 'internal_failure', 'lost', 0);
        end if;
        closed := closed + 1;
    end loop;
    for waiting in
        select w.account_id
        from (
            select distinct r.account_id from public.runs as r
            where r.status = 'queued' and r.admitted_at is null
        ) as w
        join public.accounts as a on a.id = w.account_id and a.deleted_at is null
        join public.plans as p on p.name = a.plan
        where p.runs_at_once > (
            select count(*) from public.runs as r
            where r.account_id = w.account_id and r.takes_turn and r.admitted_at is not null
                and r.status in ('queued', 'processing', 'paused')
        )
    loop
        if runs.try_lock_account(waiting) then
            perform runs.admit(waiting);
        end if;
    end loop;
    return closed;
end;
$$;

-- A bigger plan has room at once, unless the account's credits are being moved: then whoever does that, or
-- the next look for lost runs, admits. A deleted account's runs are asked to stop.
create function runs.follow_account() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
    unended uuid[];
    run_id uuid;
begin
    if new.deleted_at is null then
        if runs.try_lock_account(new.id) then
            perform runs.admit(new.id);
        end if;
        return null;
    end if;
    -- Every row before the credits, and parents before children, as whoever cancels one of them does.
    unended := array(
        select r.id from public.runs as r
        where r.account_id = new.id and r.status in ('queued', 'processing', 'paused')
        order by r.parent_id is not null, r.id
        for no key update
    );
    foreach run_id in array unended loop
        perform runs.cancel_tree(new.id, run_id);
    end loop;
    return null;
end;
$$;

create trigger follow_account_with_runs after update of plan, deleted_at on public.accounts
    for each row when (old.plan is distinct from new.plan or old.deleted_at is distinct from new.deleted_at)
    execute function runs.follow_account();

-- What the engine remembers -----------------------------------------------------------------------

-- The engine keeps steps' results without a reference to their work, so each table is named.
create function runs.delete_work(engine_ids text[]) returns void
language plpgsql set search_path = '' as $$
begin
    delete from dbos.workflow_input where workflow_uuid = any (engine_ids);
    delete from dbos.workflow_output where workflow_uuid = any (engine_ids);
    delete from dbos.operation_outputs where workflow_uuid = any (engine_ids);
    delete from dbos.workflow_status where workflow_uuid = any (engine_ids);
end;
$$;

-- What was done with a run goes with it: an account that is removed leaves nothing behind.
create function runs.forget_deleted() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
    perform runs.delete_work(array(select engine_id from gone));
    return null;
end;
$$;

create trigger forget_deleted after delete on public.runs
    referencing old table as gone for each statement execute function runs.forget_deleted();

-- Forgets work that has ended kept_for ago, at most works_max at a time, and results that a worker still
-- wrote when theirs was deleted already; how many works it were.
create function runs.forget_ended(kept_for interval, works_max integer) returns integer
language plpgsql security definer set search_path = '' as $$
declare
    before_ms constant bigint := extract(epoch from clock_timestamp() - kept_for) * 1000;
    ended text[];
begin
    ended := array(
        select w.workflow_uuid from dbos.workflow_status as w
        where w.completed_at < before_ms and w.status not in ('ENQUEUED', 'DELAYED', 'PENDING')
        order by w.completed_at
        limit works_max
        for update skip locked
    );
    perform runs.delete_work(ended);
    delete from dbos.operation_outputs as o
    where (o.workflow_uuid, o.function_id) in (
        select s.workflow_uuid, s.function_id from dbos.operation_outputs as s
        where s.retention_timestamp < before_ms and not exists (
            select from dbos.workflow_status as w where w.workflow_uuid = s.workflow_uuid)
        limit works_max
    );
    return cardinality(ended);
end;
$$;

revoke all on function
    runs.turn_of(uuid, text, bigint, integer),
    runs.try_lock_account(uuid),
    runs.end_run(public.runs, text, text, text, bigint),
    runs.cancel_tree(uuid, uuid),
    runs.follow_account(),
    runs.delete_work(text[]),
    runs.forget_deleted(),
    runs.forget_ended(interval, integer)
from public, anon, authenticated, service_role;
grant execute on function runs.forget_ended(interval, integer) to service_role;
