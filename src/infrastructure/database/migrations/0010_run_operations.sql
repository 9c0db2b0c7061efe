-- Runs that are paused, cancelled, lost, retried or deleted, and the reads of callers.

-- Pause -------------------------------------------------------------------------------------------

-- Takes the run from its worker until the account can pay credits_needed. The caller has held the lock on
-- the account's credits since its hold was refused, so credits that arrive later find the run paused. The
-- work that the engine has now returns; the run continues as new work, under the new engine_id.
-- outcome: done | cancelling (a cancellation was requested: the run has to end) | ended | unknown | fenced
create function runs.pause(
    account uuid, id uuid, fence bigint, progress integer, step text, credits_needed bigint
) returns runs.answer language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
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
language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
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
create function runs.request_cancel(account uuid, id uuid) returns runs.answer
language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
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

-- Lost runs and changed accounts ------------------------------------------------------------------

-- Raises the fence of every run whose executor is gone. One that somebody has locked is left for the next
-- heartbeat: to wait for it, with others locked, could be to wait for each other. Until then nothing is
-- lost: whoever takes it up raises its fence as well.
create function runs.fence_off() returns void language sql set search_path = '' as $$
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

-- Ends runs that nobody will ever finish, so nobody is charged: those whose work the engine no longer has
-- (deleted or cancelled there by hand, or given up), and those at work that have not moved for stuck_after
-- (one that waits for its children moves when they do).
-- Those it has had for less than older_than are left alone, and those that wait for their account's turn or
-- are paused. Then accounts that have room and somebody waiting get what they were not given: a plan
-- was changed. It waits for nobody: what is locked is being moved, or looked at again the next time.
create function runs.close_lost(older_than interval, stuck_after interval, runs_max integer)
returns integer language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
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

-- Retention of the engine's rows ------------------------------------------------------------------

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
language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
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

-- Retry -------------------------------------------------------------------------------------------

-- The same work under a new id, by the rules of a first start (see runs.analysis_refusal in 0014) and paid for
-- as if it were new: a run that failed was charged nothing. The same new id again: the same new run.
-- outcome: as of runs.start and runs.analysis_refusal, and unknown | not_retryable (run is the one that was to
-- be tried again). bound, wait_s: as of runs.start_analysis; of a bulk, bound is the price of an item.
create function runs.retry(
    account uuid, tried_id uuid, id uuid, user_id uuid, api_key uuid, refund_policy integer,
    out answer runs.answer, out bound bigint, out wait_s double precision
) language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    -- Concurrent starts of one account wait here: what is counted below stays so.
    locked public.credit_accounts := ledger.lock_account(account);
    tried public.runs;
    transaction_type text;
    refusal record;
begin
    select * into tried from public.runs as r where r.account_id = account and r.id = tried_id;
    if not found then
        answer := row('unknown', null, null)::runs.answer;
        return;
    elsif tried.status not in ('failed', 'cancelled') or exists (
        select from public.runs as r where r.account_id = account and r.parent_id = tried_id
    ) then
        answer := row('not_retryable', tried, null)::runs.answer;
        return;
    elsif not exists (select from public.runs as r where r.account_id = account and r.id = retry.id) then
        refusal := runs.analysis_refusal(account, tried.kind, tried.subject, tried.dedup_key, api_key);
        if refusal.outcome is not null then
            answer := row(refusal.outcome, null, null)::runs.answer;
            bound := refusal.bound;
            wait_s := refusal.wait_s;
            return;
        elsif tried.kind = 'bulk_analysis' then
            -- A bulk run holds nothing itself; its account must be able to pay the first item.
            select c.credits into bound from public.analysis_costs as c where c.type = tried.subject ->> 'type';
            if locked.credits_available < bound then
                answer := row('insufficient', null, locked.credits_available)::runs.answer;
                return;
            end if;
        end if;
    end if;
    select h.transaction_type into transaction_type from public.credit_holds as h
    where h.account_id = account and h.reference = tried.hold_reference;
    answer := runs.start(
        account, id, tried.kind, tried.subject, tried.credits_held, transaction_type, tried.queue,
        takes_turn => tried.takes_turn, dedup_key => tried.dedup_key, user_id => user_id,
        api_key => api_key, refund_policy => refund_policy, retry_of => tried_id);
    if answer.outcome = 'started' then
        perform runs.copy_items(account, tried_id, id);
    elsif answer.outcome = 'key_capped' then
        select k.credits_per_month_max into bound from public.api_keys as k
        where k.account_id = account and k.id = api_key;
    end if;
end;
$$;

-- Reads of callers --------------------------------------------------------------------------------

-- A run, and the sums over its children.
create type caller.run_sight as (
    run public.runs,
    children_credits_held bigint,
    children_credits_charged bigint
);

create function caller.with_children(run public.runs) returns caller.run_sight
language plpgsql stable set search_path = '' as $$
declare
    sight caller.run_sight;
begin
    select run, coalesce(sum(c.credits_held), 0), coalesce(sum(c.credits_charged), 0)
    into sight
    from public.runs as c
    where c.account_id = run.account_id and c.parent_id = run.id;
    return sight;
end;
$$;

-- No row: the account cannot be seen. A row without an id: the account has no such run.
create function caller.run(claims text, chosen uuid, run_id uuid) returns setof caller.run_sight
language plpgsql set search_path = '' as $$
declare
    account uuid := caller.enter(claims, chosen);
    run public.runs;
begin
    perform from public.accounts as a where a.id = account;
    if not found then
        return;
    end if;
    select * into run from public.runs as r where r.account_id = account and r.id = run_id;
    return next caller.with_children(run);
end;
$$;

-- Newest first, from behind a place; without a place from the first. Children only where their parent is
-- named. Rows as above.
create function caller.runs(
    claims text, chosen uuid, only_status text, only_kind text, parent uuid, since_at timestamptz,
    until_at timestamptz, before_at timestamptz, before_id uuid, runs_max integer
) returns setof caller.run_sight language plpgsql set search_path = '' as $$
declare
    account uuid := caller.enter(claims, chosen);
    found_runs public.runs[];
begin
    perform from public.accounts as a where a.id = account;
    if not found then
        return;
    end if;
    since_at := coalesce(since_at, '-infinity');
    until_at := coalesce(until_at, 'infinity');
    before_at := coalesce(before_at, 'infinity');
    before_id := coalesce(before_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
    if parent is null then
        found_runs := array(
            select r from public.runs as r
            where r.account_id = account and r.parent_id is null
                and (r.created_at, r.id) < (before_at, before_id)
                and r.created_at >= since_at and r.created_at < until_at
                and (only_status is null or r.status = only_status)
                and (only_kind is null or r.kind = only_kind)
            order by r.created_at desc, r.id desc
            limit runs_max
        );
    else
        found_runs := array(
            select r from public.runs as r
            where r.account_id = account and r.parent_id = parent
                and (r.created_at, r.id) < (before_at, before_id)
                and r.created_at >= since_at and r.created_at < until_at
                and (only_status is null or r.status = only_status)
                and (only_kind is null or r.kind = only_kind)
            order by r.created_at desc, r.id desc
            limit runs_max
        );
    end if;
    return next null;  -- the account is there, whatever it has
    return query select (caller.with_children(r)).* from unnest(found_runs) as r;
end;
$$;

grant execute on function
    runs.pause(uuid, uuid, bigint, integer, text, bigint),
    runs.tend_paused(interval, integer),
    runs.request_cancel(uuid, uuid),
    runs.close_lost(interval, interval, integer),
    runs.forget_ended(interval, integer),
    runs.retry(uuid, uuid, uuid, uuid, uuid, integer)
to service_role;

grant execute on function
    caller.with_children(public.runs),
    caller.run(text, uuid, uuid),
    caller.runs(
        text, uuid, text, text, uuid, timestamptz, timestamptz, timestamptz, uuid, integer)
to app_user;
