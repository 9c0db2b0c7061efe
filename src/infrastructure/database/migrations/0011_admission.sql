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
    add column turn integer check (turn > 0),  -- its place in the engine's queue
    add constraint runs_retry_of foreign key (account_id, retry_of)
        references public.runs (account_id, id) on delete set null (retry_of);

update public.runs set admitted_at = created_at where admitted_at is null;
alter table public.runs add check (admitted_at is not null or status in ('queued', 'failed', 'cancelled'));

drop index public.runs_queued;
drop index public.runs_unended;
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

-- Whose turn it is --------------------------------------------------------------------------------

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

-- A run's life ------------------------------------------------------------------------------------

drop function runs.start(
    uuid, uuid, text, jsonb, bigint, text, text, integer, text, text, uuid, uuid, uuid);

-- Credits set aside, the run's row and its place in the queue, all or nothing and in one round trip. The
-- same id again: the same run.
-- outcome: started | repeated | duplicate (the run in progress) | insufficient | key_capped | unknown_key
--          | test_key | unknown_account | unknown_type | wrong_sign | conflicting
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
    account uuid, id uuid, fence bigint, progress integer, step text
) returns runs.answer language plpgsql security definer set search_path = '' as $$
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

-- Paused runs -------------------------------------------------------------------------------------

-- Takes the run from its worker until the account can pay credits_needed. The caller has held the lock on
-- the account's credits since its hold was refused, so credits that arrive later find the run paused. The
-- work that the engine has now returns; the run continues as new work, under the new engine_id.
-- outcome: done | cancelling (a cancellation was requested: the run has to end) | ended | unknown | fenced
create function runs.pause(
    account uuid, id uuid, fence bigint, progress integer, step text, credits_needed bigint
) returns runs.answer language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    answer runs.answer := runs.progress(account, id, fence, progress, step);
    run public.runs := answer.run;
begin
    if answer.outcome <> 'done' then
        return answer;
    elsif run.should_cancel then
        return row('cancelling', run, null)::runs.answer;
    end if;
    update public.runs as r
    set status = 'paused', paused_at = clock_timestamp(), credits_needed = pause.credits_needed,
        executor = null, attempt = 0, fence = r.fence + 1, engine_id = r.id || ':' || (r.fence + 1)
    where r.account_id = account and r.id = pause.id
    returning * into run;
    return row('done', run, null)::runs.answer;
end;
$$;

-- Enqueues the account's paused runs again, the longest paused first, as many as its credits can pay the
-- next item of. The account's credits must be locked. A run that another transaction has locked is being
-- ended; waiting for it here, after the credits, could deadlock.
create function runs.resume_paused(account uuid) returns void
language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    credits_left bigint := (
        select a.credits_available from public.credit_accounts as a where a.account_id = account);
    run public.runs;
begin
    for run in
        select * from public.runs as r
        where r.account_id = account and r.status = 'paused' and r.credits_needed <= credits_left
        order by r.paused_at, r.id
        for no key update skip locked
    loop
        continue when run.credits_needed > credits_left;
        credits_left := credits_left - run.credits_needed;
        update public.runs as r set status = 'queued', paused_at = null, credits_needed = null
        where r.account_id = account and r.id = run.id;
        perform runs.enqueue(account, run.id, 1, 1);
    end loop;
end;
$$;

-- Whatever adds credits, a purchase, a renewal or a release, resumes paused runs in its own transaction.
create function runs.follow_credits() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
    perform runs.resume_paused(new.account_id);
    return null;
end;
$$;

create trigger resume_paused after update of credits_available on public.credit_accounts
    for each row when (new.credits_available > old.credits_available)
    execute function runs.follow_credits();

-- Ends a paused run, whose row must be locked, and what it has not started. Nothing is held: a run pauses
-- when none of its items is at work.
create function runs.end_paused(run public.runs, status text, outcome text, error text)
returns runs.answer language plpgsql set search_path = '' as $$
#variable_conflict use_variable
begin
    update public.bulk_items as i
    set status = case status when 'cancelled' then 'cancelled' else 'skipped' end, outcome = end_paused.outcome
    where i.account_id = run.account_id and i.run_id = run.id and i.status = 'waiting';
    return runs.end_run(run, status, outcome, error, 0);
end;
$$;

-- Ends runs that have been paused for expire_after, at most runs_max at a time; how many. Then it resumes
-- those that their account can pay: a safety net, because credits that arrive resume them. It waits for no
-- lock: what is locked is found the next time.
create function runs.tend_paused(expire_after interval, runs_max integer) returns integer
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    expired public.runs[];
    run public.runs;
    payer uuid;
    ended integer := 0;
begin
    expired := array(
        select r from public.runs as r
        where r.status = 'paused' and r.paused_at <= clock_timestamp() - expire_after
        order by r.paused_at
        limit runs_max
        for no key update of r skip locked
    );
    foreach run in array expired loop
        continue when not runs.try_lock_account(run.account_id);
        perform runs.end_paused(run, 'failed', 'expired', 'expired');
        ended := ended + 1;
    end loop;
    for payer in
        select distinct a.account_id from public.runs as r
        join public.credit_accounts as a on a.account_id = r.account_id
        where r.status = 'paused' and r.credits_needed <= a.credits_available
    loop
        if runs.try_lock_account(payer) then
            perform runs.resume_paused(payer);
        end if;
    end loop;
    return ended;
end;
$$;

-- Cancellation ------------------------------------------------------------------------------------

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
    elsif run.status = 'paused' then
        answer := runs.end_paused(run, 'cancelled', 'cancelled_queued', null);
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

-- Upkeep -------------------------------------------------------------------------------------------

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

drop function runs.close_lost(interval, integer);

-- Ends runs that nobody will ever finish, so nobody is charged: those whose work the engine no longer has
-- (deleted or cancelled there by hand, or given up), and those at work that have not moved for stuck_after
-- (one that waits for its children moves when they do).
-- Those it has had for less than older_than are left alone, and those that wait for their account's turn or
-- are paused. Then accounts that have room and somebody waiting get what they were not given: a plan
-- was changed. It waits for nobody: what is locked is being moved, or looked at again the next time.
create function runs.close_lost(older_than interval, stuck_after interval, runs_max integer)
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
        where r.status in ('queued', 'processing') and r.admitted_at < now_at - older_than
            and r.updated_at < now_at - older_than
            and (
                (r.status = 'processing' and r.takes_turn and r.updated_at < now_at - stuck_after)
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
        if run.status = 'processing' and run.takes_turn and run.updated_at < now_at - stuck_after then
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

-- What was done with a run goes with it: an account that is removed leaves nothing behind. A run that has
-- paused had other work before, named by the run's id and a fence.
create function runs.forget_deleted() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
    perform runs.delete_work(array(
        select engine_id from gone
        union all
        select concat_ws(':', g.id, nullif(f, 0)) from gone as g, generate_series(0, g.fence) as f
        where g.engine_id <> g.id::text
    ));
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

-- Who may execute what ----------------------------------------------------------------------------

revoke all on function
    runs.turn_of(uuid, text, bigint, integer),
    runs.enqueue(uuid, uuid, bigint, integer),
    runs.try_lock_account(uuid),
    runs.admit(uuid),
    runs.start(
        uuid, uuid, text, jsonb, bigint, text, text, boolean, text, uuid, uuid, uuid, integer, uuid),
    runs.cost_of(uuid, uuid),
    runs.end_run(public.runs, text, text, text, bigint),
    runs.pause(uuid, uuid, bigint, integer, text, bigint),
    runs.resume_paused(uuid),
    runs.follow_credits(),
    runs.end_paused(public.runs, text, text, text),
    runs.tend_paused(interval, integer),
    runs.cancel_tree(uuid, uuid),
    runs.close_lost(interval, interval, integer),
    runs.follow_account(),
    runs.delete_work(text[]),
    runs.forget_deleted(),
    runs.forget_ended(interval, integer)
from public, anon, authenticated, service_role;
grant execute on function
    runs.start(
        uuid, uuid, text, jsonb, bigint, text, text, boolean, text, uuid, uuid, uuid, integer, uuid),
    runs.pause(uuid, uuid, bigint, integer, text, bigint),
    runs.tend_paused(interval, integer),
    runs.close_lost(interval, interval, integer),
    runs.forget_ended(interval, integer)
to service_role;
