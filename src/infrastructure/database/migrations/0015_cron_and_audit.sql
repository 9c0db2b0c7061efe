-- Scheduled jobs and the audit log of operators. One row claims a job's slot, whichever process's clock is first, and
-- the engine executes it like a run; the row is the job's history too. An operator's request is recorded before it is
-- executed.

create schema scheduling;
grant usage on schema scheduling to service_role;

create table public.cron_runs (
    job text not null check (job ~ '^[a-z][a-z-]{0,59}$'),
    slot timestamptz not null,  -- due time; of an operator's run, the time of the request
    id uuid not null default gen_random_uuid() unique,
    trigger text not null check (trigger in ('schedule', 'catch_up', 'operator')),
    status text not null default 'queued' check (status in ('queued', 'running', 'completed', 'failed')),
    is_dry_run boolean not null default false,
    requested_by uuid,  -- the operator
    executor text check (length(executor) between 1 and 100),
    attempts integer not null default 0 check (attempts >= 0),
    counts jsonb not null default '{}' check (jsonb_typeof(counts) = 'object'),
    findings jsonb not null default '[]' check (jsonb_typeof(findings) = 'array'),
    error text check (error ~ '^[a-z][a-z0-9_]{0,59}$'),
    claimed_at timestamptz not null default clock_timestamp(),
    started_at timestamptz,
    ended_at timestamptz,
    primary key (job, slot),
    check ((status in ('completed', 'failed')) = (ended_at is not null)),
    check (error is null or status = 'failed'),
    check ((trigger = 'operator') = (requested_by is not null))
);

create index cron_runs_by_age on public.cron_runs (job, slot desc, id desc);
create index cron_runs_unended on public.cron_runs (claimed_at) where status in ('queued', 'running');

-- One row. Earlier slots are not caught up: there were no jobs yet.
create table scheduling.settings (catch_up_since timestamptz not null default clock_timestamp());

insert into scheduling.settings default values;

-- Requests of operators. An entry outlives the account. status: of the response; null: in progress, or its
-- process was killed.
create table public.audit_log (
    id uuid primary key,
    at timestamptz not null default clock_timestamp(),
    operator_id uuid not null,
    operation text not null check (length(operation) between 1 and 100),
    method text not null check (length(method) between 1 and 20),
    path text not null check (length(path) between 1 and 2000),
    account_id uuid,
    request_id text not null check (length(request_id) <= 200),
    body_sha256 bytea check (octet_length(body_sha256) = 32),
    reason text check (length(reason) <= 500),
    status smallint,
    code text check (length(code) <= 100),  -- of the problem
    ended_at timestamptz,
    check ((status is null) = (ended_at is null))
);

create index audit_log_by_age on public.audit_log (at desc, id desc);
create index audit_log_by_operator on public.audit_log (operator_id, at desc, id desc);
create index audit_log_by_operation on public.audit_log (operation, at desc, id desc);
create index audit_log_by_account on public.audit_log (account_id, at desc, id desc);

call private.protect_table('public.cron_runs', 'select');
call private.protect_table('scheduling.settings', 'select');

-- An entry's facts never change; its end is added.
call private.protect_table('public.audit_log', 'select, insert, update (status, code, ended_at)');

-- Slots -------------------------------------------------------------------------------------------

create type scheduling.result as (
    outcome text,
    run public.cron_runs
);

-- Inserts the slot's row and enqueues its workflow, both or neither. Of concurrent claims of a slot one
-- succeeds. The same new_id again returns the same run, whatever the slot: an operator repeats a request.
-- outcome: claimed | existing | before_installation
create function scheduling.claim(
    job text, slot timestamptz, new_id uuid, trigger text, is_dry_run boolean, requested_by uuid
) returns scheduling.result language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    claimed public.cron_runs;
    slot_text constant text := to_char(slot at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
begin
    if trigger = 'catch_up' and slot < (
        select s.catch_up_since from scheduling.settings as s
    ) then
        return row('before_installation', null)::scheduling.result;
    end if;
    insert into public.cron_runs (job, slot, id, trigger, is_dry_run, requested_by)
    values (job, slot, new_id, trigger, is_dry_run, requested_by)
    on conflict do nothing returning * into claimed;
    if not found then
        select c.* into claimed from public.cron_runs as c
        where c.id = new_id or (c.job = job and c.slot = slot)
        order by c.id = new_id desc limit 1;
        return row('existing', claimed)::scheduling.result;
    end if;
    perform dbos.enqueue_workflow(
        workflow_name => 'cron_job', queue_name => 'cron',
        positional_args => array[to_json(job), to_json(slot_text)],
        workflow_id => 'cron:' || job || ':' || slot_text, priority => 1);
    return row('claimed', claimed)::scheduling.result;
end;
$$;

-- Starts an attempt of a slot; scheduling.finish states its number. outcome: begun | ended | unknown | fenced
-- (the executor was declared lost) | exhausted
create function scheduling.begin(job text, slot timestamptz, new_executor text, attempts_max integer)
returns scheduling.result language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    run public.cron_runs;
begin
    select c.* into run from public.cron_runs as c
    where c.job = job and c.slot = slot for no key update;
    if not found then
        return row('unknown', null)::scheduling.result;
    elsif run.ended_at is not null then
        return row('ended', run)::scheduling.result;
    elsif not traffic.is_worker_alive(new_executor) then
        return row('fenced', run)::scheduling.result;
    end if;
    update public.cron_runs as c
    set status = 'running', executor = new_executor, attempts = c.attempts + 1,
        started_at = coalesce(c.started_at, clock_timestamp())
    where c.job = job and c.slot = slot
    returning * into run;
    return row(case when run.attempts > attempts_max then 'exhausted' else 'begun' end, run)::scheduling.result;
end;
$$;

-- Ends a slot once. False: another attempt has begun, or the slot has ended.
create function scheduling.finish(
    job text, slot timestamptz, attempt integer, status text, counts jsonb, findings jsonb, error text
) returns boolean language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
begin
    update public.cron_runs as c
    set status = status, counts = counts, findings = findings, error = error, ended_at = clock_timestamp()
    where c.job = job and c.slot = slot and c.attempts = attempt and c.ended_at is null;
    return found;
end;
$$;

-- Fails slots whose workflow the engine no longer has, because it was deleted or cancelled there. Returns their
-- number.
create function scheduling.fail_stalled() returns integer
language plpgsql security definer set search_path = '' as $$
declare
    failed_count integer;
begin
    update public.cron_runs as c
    set status = 'failed', error = 'lost', ended_at = clock_timestamp()
    where c.status in ('queued', 'running') and c.claimed_at < clock_timestamp() - interval '1 hour'
        and not exists (
            select from dbos.workflow_status as w
            where w.workflow_uuid = 'cron:' || c.job || ':'
                    || to_char(c.slot at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
                and w.status in ('ENQUEUED', 'DELAYED', 'PENDING')
        );
    get diagnostics failed_count = row_count;
    return failed_count;
end;
$$;

-- Retention ---------------------------------------------------------------------------------------

-- The condition by which rows of a table are purged; $1 is the retention period of the domain rule. A slice's
-- migration adds the rows of its tables; a table without a row is never purged. Dependent rows are purged first and
-- counted; cascades delete only an account's small tables and its ledger. An account that Stripe still bills is kept
-- until that ends.
create table scheduling.purge_conditions (
    table_name text primary key check (table_name ~ '^[a-z_]+\.[a-z_]+$'),
    condition text not null
);
call private.protect_table('scheduling.purge_conditions', 'select');

insert into scheduling.purge_conditions (table_name, condition) values
    ('public.ai_usage_logs', $where$ x.created_at < now() - $1 $where$),
    ('public.scrape_logs', $where$ x.created_at < now() - $1 $where$),
    ('public.analyses', $where$
        x.deleted_at < now() - $1
        or (x.account_id, x.lead_id) in (
            select l.account_id, l.id from public.leads as l
            where l.deleted_at < now() - $1)
        or (x.account_id, x.lead_id) in (
            select l.account_id, l.id from public.leads as l
            join public.business_profiles as b
                on b.account_id = l.account_id and b.id = l.business_profile_id
            where b.deleted_at < now() - $1)
        or x.account_id in (select scheduling.accounts_to_purge($1)) $where$),
    ('public.leads', $where$
        x.deleted_at < now() - $1
        or (x.account_id, x.business_profile_id) in (
            select b.account_id, b.id from public.business_profiles as b
            where b.deleted_at < now() - $1)
        or x.account_id in (select scheduling.accounts_to_purge($1)) $where$),
    ('public.business_profiles', $where$
        x.deleted_at < now() - $1
        or x.account_id in (select scheduling.accounts_to_purge($1)) $where$),
    ('public.runs', $where$ x.account_id in (select scheduling.accounts_to_purge($1)) $where$),
    ('public.accounts', $where$ x.id in (select scheduling.accounts_to_purge($1)) $where$),
    ('public.webhook_messages', $where$ x.created_at < now() - $1 $where$),
    ('public.webhook_events', $where$
        x.status in ('applied', 'ignored') and x.received_at < now() - $1 $where$),
    ('public.cron_runs', $where$ x.slot < now() - $1 $where$),
    ('public.completion_cache', $where$ x.expires_at < now() - $1 $where$),
    ('public.anonymous_analyses', $where$ x.expires_at < now() - $1 $where$),
    ('traffic.idempotency_keys', $where$ x.created_at < now() - $1 $where$),
    ('traffic.rate_windows', $where$ x.expires_at < now() - $1 $where$),
    ('traffic.leases', $where$ x.expires_at < now() - $1 $where$),
    ('traffic.requests', $where$ x.at < now() - $1 $where$),
    ('traffic.request_counts', $where$ x.minute < now() - $1 $where$),
    ('traffic.data_points', $where$ x.at < now() - $1 $where$);

create function scheduling.purge_condition(of_table text) returns text
language plpgsql stable set search_path = '' as $$
declare
    found_condition text;
begin
    select c.condition into found_condition from scheduling.purge_conditions as c where c.table_name = of_table;
    if not found then
        raise exception 'no row in scheduling.purge_conditions for %', of_table;
    end if;
    return found_condition;
end;
$$;

create function scheduling.accounts_to_purge(retention interval) returns setof uuid
language sql stable set search_path = '' as $$
    select a.id from public.accounts as a
    where a.deleted_at < now() - retention and not exists (
        select from public.subscriptions as s
        where s.account_id = a.id and s.clock = 'stripe' and s.ended_at is null)
$$;

-- Purges at most rows_max rows and returns their number. Locked rows are left for the next time.
create function scheduling.purge(table_name text, retention interval, rows_max integer) returns bigint
language plpgsql security definer set search_path = '' as $$
declare
    purged bigint;
begin
    execute format(
        'delete from %1$s where ctid = any (array('
        'select x.ctid from %1$s as x where %2$s limit $2 for update skip locked))',
        table_name::regclass, scheduling.purge_condition(table_name)) using retention, rows_max;
    get diagnostics purged = row_count;
    return purged;
end;
$$;

create function scheduling.count_purgeable(table_name text, retention interval) returns bigint
language plpgsql stable security definer set search_path = '' as $$
declare
    found bigint;
begin
    execute format(
        'select count(*) from %s as x where %s', table_name::regclass, scheduling.purge_condition(table_name))
    into found using retention;
    return found;
end;
$$;

-- Dry runs of other jobs --------------------------------------------------------------------------

-- The runs that runs.fail_stalled would fail. Not in SQL, because the engine's tables are created later.
create function scheduling.count_stalled_runs(older_than interval, stuck_after interval) returns bigint
language plpgsql stable security definer set search_path = '' as $$
begin
    return (
        select count(*) from public.runs as r
        where r.status in ('queued', 'processing') and r.admitted_at < now() - older_than
            and r.updated_at < now() - older_than
            and (
                (r.status = 'processing' and r.uses_concurrency_slot and r.updated_at < now() - stuck_after)
                or not exists (
                    select from dbos.workflow_status as w
                    where w.workflow_uuid = r.engine_id and w.status in ('ENQUEUED', 'DELAYED', 'PENDING')
                )
            )
    );
end;
$$;

create function scheduling.count_expired_lots(out accounts bigint, out credits bigint)
language sql stable security definer set search_path = '' as $$
    select count(distinct l.account_id), coalesce(sum(l.credits_available), 0)::bigint
    from public.credit_accounts as a
    join public.credit_lots as l on l.account_id = a.account_id
    where a.next_lapse_at <= now() and l.lapses_at <= now() and l.credits_available > 0
$$;

grant execute on function
    scheduling.claim(text, timestamptz, uuid, text, boolean, uuid),
    scheduling.begin(text, timestamptz, text, integer),
    scheduling.finish(text, timestamptz, integer, text, jsonb, jsonb, text),
    scheduling.fail_stalled(),
    scheduling.purge(text, interval, integer),
    scheduling.count_purgeable(text, interval),
    scheduling.count_stalled_runs(interval, interval),
    scheduling.count_expired_lots()
to service_role;
