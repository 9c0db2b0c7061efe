-- Runs as their account sees them: reads under row level security, a message for whoever watches one, and
-- another try for one that went wrong.

-- For the times that steps usually take.
create index runs_completed on public.runs (kind, ended_at desc) where status = 'completed';

-- Reads -------------------------------------------------------------------------------------------

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

-- Messages ----------------------------------------------------------------------------------------

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

-- Who may see what was true a moment ago may not be now: 'user id', 'key id' or 'account id'.
create function private.tell_access() returns trigger language plpgsql set search_path = '' as $$
begin
    if tg_table_name = 'memberships' then
        perform pg_notify('oslira_access', 'user ' || coalesce(new.user_id, old.user_id));
    elsif tg_table_name = 'api_keys' then
        perform pg_notify('oslira_access', 'key ' || old.id);
    else
        perform pg_notify('oslira_access', 'account ' || old.id);
    end if;
    return null;
end;
$$;

create trigger tell_access after insert or update or delete on public.memberships
    for each row execute function private.tell_access();
create trigger tell_access after update on public.api_keys
    for each row when (
        (old.revoked_at, old.expires_at, old.scopes) is distinct from
        (new.revoked_at, new.expires_at, new.scopes)
    )
    execute function private.tell_access();
create trigger tell_access_of_removed after delete on public.api_keys
    for each row execute function private.tell_access();
create trigger tell_access after update of deleted_at on public.accounts
    for each row execute function private.tell_access();

-- Another try -------------------------------------------------------------------------------------

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

-- The same work under a new id, by the rules of a first start (see runs.analysis_refusal in 0014) and paid for
-- as if it were new: a run that failed was charged nothing. The same new id again: the same new run.
-- outcome: as of runs.start and runs.analysis_refusal, and unknown | not_retryable (run is the one that was to
-- be tried again). bound, wait_s: as of runs.start_analysis; of a bulk, bound is the price of an item.
create function runs.retry(
    account uuid, tried_id uuid, id uuid, user_id uuid, api_key uuid, refund_policy integer,
    out answer runs.answer, out bound bigint, out wait_s double precision
) language plpgsql security definer set search_path = '' as $$
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

-- Who may execute what ----------------------------------------------------------------------------

revoke all on function
    runs.tell_change(),
    private.tell_access(),
    runs.copy_steps(text, text),
    runs.retry(uuid, uuid, uuid, uuid, uuid, integer),
    caller.with_children(public.runs),
    caller.run(text, uuid, uuid),
    caller.runs(
        text, uuid, text, text, uuid, timestamptz, timestamptz, timestamptz, uuid, integer)
from public, anon, authenticated, service_role;
grant execute on function
    caller.with_children(public.runs),
    caller.run(text, uuid, uuid),
    caller.runs(
        text, uuid, text, text, uuid, timestamptz, timestamptz, timestamptz, uuid, integer)
to app_user;
grant execute on function runs.retry(uuid, uuid, uuid, uuid, uuid, integer) to service_role;
