-- Runs that are paused, cancelled, lost, retried or deleted, and the reads of callers.

-- Pause -------------------------------------------------------------------------------------------

-- Pauses the run until the account can pay credits_needed. The caller has locked the account's credits since its
-- hold was rejected, so credits that arrive later find the run paused. The engine's current workflow returns;
-- the run continues as a new workflow with the new engine_id.
-- outcome: done | cancelling (a cancellation was requested: the run has to end) | ended | unknown | fenced
create function runs.pause(
    account uuid, id uuid, fence bigint, progress integer, step text, credits_needed bigint
) returns runs.result language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    result runs.result := runs.progress(account, id, fence, progress, step);
    run public.runs := result.run;
begin
    if result.outcome <> 'done' then
        return result;
    elsif run.should_cancel then
        return row('cancelling', run, null)::runs.result;
    end if;
    update public.runs as r
    set status = 'paused', paused_at = clock_timestamp(), credits_needed = pause.credits_needed,
        executor = null, attempt = 0, fence = r.fence + 1, engine_id = r.id || ':' || (r.fence + 1)
    where r.account_id = account and r.id = pause.id
    returning * into run;
    return row('done', run, null)::runs.result;
end;
$$;

-- Enqueues the account's paused runs again, the longest paused first, as many as its credits pay the next item
-- of. The account's credits must be locked. A locked run is being ended; waiting for it here, after the credits,
-- could deadlock.
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

-- Every increase of credits (a purchase, a renewal, a release) resumes paused runs in its own transaction.
create function runs.resume_on_credits() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
    perform runs.resume_paused(new.account_id);
    return null;
end;
$$;

create trigger resume_paused after update of credits_available on public.credit_accounts
    for each row when (new.credits_available > old.credits_available)
    execute function runs.resume_on_credits();

-- Ends a paused run, whose row must be locked, and its items that have not started. It has no hold: a run pauses
-- when none of its items is being executed.
create function runs.end_paused(run public.runs, status text, outcome text, error text)
returns runs.result language plpgsql set search_path = '' as $$
#variable_conflict use_variable
begin
    update public.bulk_items as i
    set status = case status when 'cancelled' then 'cancelled' else 'skipped' end, outcome = end_paused.outcome
    where i.account_id = run.account_id and i.run_id = run.id and i.status = 'waiting';
    return runs.end_run(run, status, outcome, error, 0);
end;
$$;

-- Ends at most runs_max runs that have been paused for expire_after and returns their number. Then it resumes
-- runs that their account can pay, as a safety net: credits that arrive resume them already. It waits for no
-- lock: locked rows are processed the next time.
create function runs.maintain_paused(expire_after interval, runs_max integer) returns integer
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

-- Cancels a run and its children: waiting ones end here and leave the engine's queue; the executor's next
-- heartbeat reports the others to it. Every row is locked before the account's credits. No run is admitted
-- meanwhile: it might be the next one to be cancelled.
-- outcome: cancelled | requested | repeated | ended | unknown
create function runs.cancel_tree(account uuid, id uuid) returns runs.result
language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    run public.runs := runs.lock_run(account, id);
    children uuid[];
    child uuid;
    result runs.result;
begin
    if run.id is null then
        return row('unknown', null, null)::runs.result;
    elsif runs.is_ended(run) then
        return row('ended', run, null)::runs.result;
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
        result.outcome := 'requested';
    else
        result.outcome := 'repeated';
    end if;
    if run.status = 'queued' then
        -- The same change as the engine's own cancellation, but in this transaction. An executor that starts the
        -- run at this moment finds it ended.
        update dbos.workflow_status as w
        set status = 'CANCELLED', owner_xid = null, queue_name = null, deduplication_id = null,
            updated_at = (extract(epoch from clock_timestamp()) * 1000)::bigint,
            completed_at = (extract(epoch from clock_timestamp()) * 1000)::bigint
        where w.workflow_uuid = run.engine_id and w.status in ('ENQUEUED', 'DELAYED');
        result := runs.end_run(run, 'cancelled', 'cancelled_queued', null, 0);
        run := result.run;
        result.outcome := 'cancelled';
    elsif run.status = 'paused' then
        result := runs.end_paused(run, 'cancelled', 'cancelled_queued', null);
        run := result.run;
        result.outcome := 'cancelled';
    end if;
    foreach child in array children loop
        perform runs.cancel_tree(account, child);
    end loop;
    return row(result.outcome, run, result.credits_available)::runs.result;
end;
$$;

-- Requests the end of a run and its children. outcome: as of runs.cancel_tree
create function runs.request_cancel(account uuid, id uuid) returns runs.result
language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
declare
    result runs.result := runs.cancel_tree(account, id);
begin
    if result.outcome not in ('ended', 'unknown') then
        perform ledger.lock_account(account);
        perform runs.admit(account);
    end if;
    return result;
end;
$$;

-- Lost runs and changed accounts ------------------------------------------------------------------

-- Raises the fence of every run whose executor is lost. Locked rows are left for the next heartbeat, because
-- waiting for one while others are locked could deadlock. Nothing is lost until then: the next attempt raises
-- the fence as well.
create function runs.fence_orphaned() returns void language sql set search_path = '' as $$
    update public.runs as r set fence = r.fence + 1, executor = null
    from (
        select f.account_id, f.id from public.runs as f
        where f.status in ('processing', 'paused') and f.executor is not null
            and not exists (
                select from traffic.workers as w where w.executor = f.executor and w.stopped_at is null)
        for no key update of f skip locked
    ) as found
    where r.account_id = found.account_id and r.id = found.id
$$;

-- Fails runs that cannot finish and charges nothing: those whose workflow the engine no longer has (deleted or
-- cancelled there, or out of attempts), and those without progress for stuck_after (a run that waits for its
-- children progresses when they do). Runs admitted less than older_than ago, waiting runs and paused runs are
-- left alone. Then it admits runs of accounts with a free slot, after a change of a plan for example. It waits
-- for no lock: locked rows are processed the next time.
create function runs.fail_stalled(older_than interval, stuck_after interval, runs_max integer)
returns integer language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    now_at constant timestamptz := clock_timestamp();
    stalled public.runs[];
    run public.runs;
    waiting_account uuid;
    failed_count integer := 0;
begin
    if not pg_try_advisory_xact_lock(7305803404) then
        return 0;  -- another process does this now
    end if;
    stalled := array(
        select r from public.runs as r
        where r.status in ('queued', 'processing') and r.admitted_at < now_at - older_than
            and r.updated_at < now_at - older_than
            and (
                (r.status = 'processing' and r.uses_concurrency_slot and r.updated_at < now_at - stuck_after)
                or not exists (
                    select from dbos.workflow_status as w
                    where w.workflow_uuid = r.engine_id and w.status in ('ENQUEUED', 'DELAYED', 'PENDING')
                )
            )
        order by r.admitted_at
        limit runs_max
        for no key update of r skip locked
    );
    foreach run in array stalled loop
        continue when not runs.try_lock_account(run.account_id);
        if run.status = 'processing' and run.uses_concurrency_slot and run.updated_at < now_at - stuck_after then
            perform runs.end_and_admit(run, 'failed', 'timeout', 'timeout', 0);
        else
            perform runs.end_and_admit(run, 'failed', 'internal_failure', 'lost', 0);
        end if;
        failed_count := failed_count + 1;
    end loop;
    for waiting_account in
        select w.account_id
        from (
            select distinct r.account_id from public.runs as r
            where r.status = 'queued' and r.admitted_at is null
        ) as w
        join public.accounts as a on a.id = w.account_id and a.deleted_at is null
        join public.plans as p on p.name = a.plan
        where p.runs_at_once > (
            select count(*) from public.runs as r
            where r.account_id = w.account_id and r.uses_concurrency_slot and r.admitted_at is not null
                and r.status in ('queued', 'processing', 'paused')
        )
    loop
        if runs.try_lock_account(waiting_account) then
            perform runs.admit(waiting_account);
        end if;
    end loop;
    return failed_count;
end;
$$;

-- A larger plan admits more runs at once, unless the account's credits are locked: then that transaction or the
-- next search for stalled runs admits. A deletion requests the end of the account's runs.
create function runs.apply_account_change() returns trigger
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
    -- Rows before the credits and parents before children, in the same order as a cancellation.
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

create trigger apply_account_change after update of plan, deleted_at on public.accounts
    for each row when (old.plan is distinct from new.plan or old.deleted_at is distinct from new.deleted_at)
    execute function runs.apply_account_change();

-- Retention of the engine's rows ------------------------------------------------------------------

-- The engine's step results have no foreign key to their workflow, so each table is deleted from.
create function runs.delete_work(engine_ids text[]) returns void
language plpgsql set search_path = '' as $$
begin
    delete from dbos.workflow_input where workflow_uuid = any (engine_ids);
    delete from dbos.workflow_output where workflow_uuid = any (engine_ids);
    delete from dbos.operation_outputs where workflow_uuid = any (engine_ids);
    delete from dbos.workflow_status where workflow_uuid = any (engine_ids);
end;
$$;

-- Deletes the engine's rows of deleted runs: a purged account leaves nothing behind. A run that has paused had
-- earlier workflows, named by its id and a fence.
create function runs.purge_deleted() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
    perform runs.delete_work(array(
        select engine_id from deleted
        union all
        select concat_ws(':', g.id, nullif(f, 0)) from deleted as g, generate_series(0, g.fence) as f
        where g.engine_id <> g.id::text
    ));
    return null;
end;
$$;

create trigger purge_deleted after delete on public.runs
    referencing old table as deleted for each statement execute function runs.purge_deleted();

-- Purges at most workflows_max workflows that ended before the retention, and step results that a worker wrote
-- after the deletion of their workflow. Returns the number of workflows.
create function runs.purge_ended(retention interval, workflows_max integer) returns integer
language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
declare
    before_ms constant bigint := extract(epoch from clock_timestamp() - retention) * 1000;
    ended text[];
begin
    ended := array(
        select w.workflow_uuid from dbos.workflow_status as w
        where w.completed_at < before_ms and w.status not in ('ENQUEUED', 'DELAYED', 'PENDING')
        order by w.completed_at
        limit workflows_max
        for update skip locked
    );
    perform runs.delete_work(ended);
    delete from dbos.operation_outputs as o
    where (o.workflow_uuid, o.function_id) in (
        select s.workflow_uuid, s.function_id from dbos.operation_outputs as s
        where s.retention_timestamp < before_ms and not exists (
            select from dbos.workflow_status as w where w.workflow_uuid = s.workflow_uuid)
        limit workflows_max
    );
    return cardinality(ended);
end;
$$;

-- Retry -------------------------------------------------------------------------------------------

-- Starts the same run under a new id, by the rules of a first start (see runs.analysis_rejection) and at its
-- price: a failed run was charged nothing. The same new id again returns the same new run.
-- outcome: as of runs.start and runs.analysis_rejection, and unknown | not_retryable (result.run is the run to
-- be retried). bound, wait_s: as of runs.start_analysis; for a bulk run, bound is the price of an item.
create function runs.retry(
    account uuid, retried_id uuid, id uuid, user_id uuid, api_key uuid, refund_policy integer,
    out result runs.result, out bound bigint, out wait_s double precision
) language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    -- Concurrent starts of one account wait here, so that the counts below stay valid.
    locked public.credit_accounts := ledger.lock_account(account);
    retried public.runs;
    transaction_type text;
    rejection record;
begin
    select * into retried from public.runs as r where r.account_id = account and r.id = retried_id;
    if not found then
        result := row('unknown', null, null)::runs.result;
        return;
    elsif retried.status not in ('failed', 'cancelled') or exists (
        select from public.runs as r where r.account_id = account and r.parent_id = retried_id
    ) then
        result := row('not_retryable', retried, null)::runs.result;
        return;
    elsif not exists (select from public.runs as r where r.account_id = account and r.id = retry.id) then
        rejection := runs.analysis_rejection(account, retried.kind, retried.subject, retried.dedup_key, api_key);
        if rejection.outcome is not null then
            result := row(rejection.outcome, null, null)::runs.result;
            bound := rejection.bound;
            wait_s := rejection.wait_s;
            return;
        elsif retried.kind = 'bulk_analysis' then
            -- A bulk run holds nothing itself; its account must be able to pay the first item.
            select c.credits into bound from public.analysis_costs as c where c.type = retried.subject ->> 'type';
            if locked.credits_available < bound then
                result := row('insufficient', null, locked.credits_available)::runs.result;
                return;
            end if;
        end if;
    end if;
    select h.transaction_type into transaction_type from public.credit_holds as h
    where h.account_id = account and h.reference = retried.hold_reference;
    result := runs.start(
        account, id, retried.kind, retried.subject, retried.credits_held, transaction_type, retried.queue,
        uses_concurrency_slot => retried.uses_concurrency_slot, dedup_key => retried.dedup_key, user_id => user_id,
        api_key => api_key, refund_policy => refund_policy, retry_of => retried_id);
    if result.outcome = 'started' then
        perform runs.copy_items(account, retried_id, id);
    elsif result.outcome = 'key_capped' then
        select k.credits_per_month_max into bound from public.api_keys as k
        where k.account_id = account and k.id = api_key;
    end if;
end;
$$;

-- Reads of callers --------------------------------------------------------------------------------

-- A run with the sums over its children. No row: the account is not visible. A row without an id: the account has
-- no such run.
create function caller.run(claims text, chosen uuid, run_id uuid)
returns table (run public.runs, children_credits_held bigint, children_credits_charged bigint)
language plpgsql set search_path = '' as $$
declare
    account uuid := caller.set_claims(claims, chosen);
begin
    perform from public.accounts as a where a.id = account;
    if not found then
        return;
    end if;
    select r.* into run from public.runs as r where r.account_id = account and r.id = run_id;
    select coalesce(sum(c.credits_held), 0), coalesce(sum(c.credits_charged), 0)
    into children_credits_held, children_credits_charged
    from public.runs as c
    where c.account_id = account and c.parent_id = run_id;
    return next;
end;
$$;

grant execute on function
    runs.pause(uuid, uuid, bigint, integer, text, bigint),
    runs.maintain_paused(interval, integer),
    runs.request_cancel(uuid, uuid),
    runs.fail_stalled(interval, interval, integer),
    runs.purge_ended(interval, integer),
    runs.retry(uuid, uuid, uuid, uuid, uuid, integer)
to service_role;

grant execute on function caller.run(text, uuid, uuid) to app_user;
