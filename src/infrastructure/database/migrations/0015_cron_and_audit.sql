-- Scheduled jobs and the audit log of operators. One row claims a job's slot, whichever process's clock is first, and
-- the engine executes it like a run; the row is the job's history too. An operator's request is recorded before it is
-- executed.

create schema cron;
grant usage on schema cron to service_role;

create table public.cron_runs (
    job text not null check (job ~ '^[a-z][a-z-]{0,59}$'),
    slot timestamptz not null,  -- when it was due; of an operator's run, when it was asked for
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

-- One row. No slot before this time was missed: there were no jobs yet.
create table cron.settings (catch_up_since timestamptz not null default clock_timestamp());

insert into cron.settings default values;

-- Who of us did what, and to whom. It outlives the account: it is about the operator. status: what was
-- answered; null: it is under way, or its process ended in the middle of it.
create table public.admin_acts (
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
    code text check (length(code) <= 100),  -- of the refusal
    ended_at timestamptz,
    check ((status is null) = (ended_at is null))
);

create index admin_acts_by_age on public.admin_acts (at desc, id desc);
create index admin_acts_by_operator on public.admin_acts (operator_id, at desc, id desc);
create index admin_acts_by_operation on public.admin_acts (operation, at desc, id desc);
create index admin_acts_by_account on public.admin_acts (account_id, at desc, id desc);

call private.protect_table('public.cron_runs', 'select');
call private.protect_table('cron.settings', 'select');

-- An entry's facts never change; its end is added.
call private.protect_table('public.admin_acts', 'select, insert, update (status, code, ended_at)');

-- Slots -------------------------------------------------------------------------------------------

create type cron.answer as (
    outcome text,
    run public.cron_runs
);

-- The slot's row and its work in the engine's queue, both or neither. Of any number who claim a slot one
-- gets it. new_id: the same one again brings the same run, whatever the slot: an operator asks again.
-- outcome: claimed | known | before_us (nobody missed a slot before there were any)
create function cron.claim(
    job text, slot timestamptz, new_id uuid, trigger text, is_dry_run boolean, requested_by uuid
) returns cron.answer language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    claimed public.cron_runs;
    slot_text constant text := to_char(slot at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
begin
    if trigger = 'catch_up' and slot < (
        select s.catch_up_since from cron.settings as s
    ) then
        return row('before_us', null)::cron.answer;
    end if;
    insert into public.cron_runs (job, slot, id, trigger, is_dry_run, requested_by)
    values (job, slot, new_id, trigger, is_dry_run, requested_by)
    on conflict do nothing returning * into claimed;
    if not found then
        select c.* into claimed from public.cron_runs as c
        where c.id = new_id or (c.job = job and c.slot = slot)
        order by c.id = new_id desc limit 1;
        return row('known', claimed)::cron.answer;
    end if;
    perform dbos.enqueue_workflow(
        workflow_name => 'cron_job', queue_name => 'cron',
        positional_args => array[to_json(job), to_json(slot_text)],
        workflow_id => 'cron:' || job || ':' || slot_text, priority => 1);
    return row('claimed', claimed)::cron.answer;
end;
$$;

-- An executor takes a slot's work up, for the first time or after another. Which attempt it is, is what it
-- shows in the end. outcome: begun | ended | unknown | fenced (the executor was given up) | exhausted
create function cron.begin(job text, slot timestamptz, new_executor text, attempts_max integer)
returns cron.answer language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    run public.cron_runs;
begin
    select c.* into run from public.cron_runs as c
    where c.job = job and c.slot = slot for no key update;
    if not found then
        return row('unknown', null)::cron.answer;
    elsif run.ended_at is not null then
        return row('ended', run)::cron.answer;
    elsif not traffic.is_alive(new_executor) then
        return row('fenced', run)::cron.answer;
    end if;
    update public.cron_runs as c
    set status = 'running', executor = new_executor, attempts = c.attempts + 1,
        started_at = coalesce(c.started_at, clock_timestamp())
    where c.job = job and c.slot = slot
    returning * into run;
    return row(case when run.attempts > attempts_max then 'exhausted' else 'begun' end, run)::cron.answer;
end;
$$;

-- The one end. False: another attempt has begun, or it had ended before.
create function cron.finish(
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

-- Ends what the engine no longer has, because it was deleted or cancelled there by hand; how many.
create function cron.close_lost() returns integer
language plpgsql security definer set search_path = '' as $$
declare
    closed integer;
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
    get diagnostics closed = row_count;
    return closed;
end;
$$;

-- Retention ---------------------------------------------------------------------------------------

-- Which rows of which tables are removed for good: the one place that says so. What hangs on a row goes
-- before it and is counted; what is left to a cascade is an account's small things, and its books. An account
-- that Stripe still bills is kept until that has ended.
create function cron.removable(table_name text) returns text
language sql immutable set search_path = '' as $$
    select case table_name
        when 'public.ai_usage_logs' then $where$ x.created_at < now() - interval '90 days' $where$
        when 'public.scrape_logs' then $where$ x.created_at < now() - interval '90 days' $where$
        when 'public.analyses' then $where$
            x.deleted_at < now() - interval '30 days'
            or (x.account_id, x.lead_id) in (
                select l.account_id, l.id from public.leads as l
                where l.deleted_at < now() - interval '30 days')
            or (x.account_id, x.lead_id) in (
                select l.account_id, l.id from public.leads as l
                join public.business_profiles as b
                    on b.account_id = l.account_id and b.id = l.business_profile_id
                where b.deleted_at < now() - interval '30 days')
            or x.account_id in (select cron.accounts_to_remove()) $where$
        when 'public.leads' then $where$
            x.deleted_at < now() - interval '30 days'
            or (x.account_id, x.business_profile_id) in (
                select b.account_id, b.id from public.business_profiles as b
                where b.deleted_at < now() - interval '30 days')
            or x.account_id in (select cron.accounts_to_remove()) $where$
        when 'public.business_profiles' then $where$
            x.deleted_at < now() - interval '30 days'
            or x.account_id in (select cron.accounts_to_remove()) $where$
        when 'public.runs' then $where$ x.account_id in (select cron.accounts_to_remove()) $where$
        when 'public.accounts' then $where$ x.id in (select cron.accounts_to_remove()) $where$
        when 'public.notices' then $where$ x.created_at < now() - interval '30 days' $where$
        when 'public.webhook_events' then $where$
            x.status in ('applied', 'ignored') and x.received_at < now() - interval '400 days' $where$
        when 'public.cron_runs' then $where$ x.slot < now() - interval '400 days' $where$
        when 'public.ai_answers' then $where$ x.expires_at < now() $where$
        when 'public.anonymous_analyses' then $where$ x.expires_at < now() $where$
        when 'traffic.idempotency_keys' then $where$ x.created_at < now() - interval '25 hours' $where$
        when 'traffic.rate_windows' then $where$ x.expires_at < now() $where$
        when 'traffic.leases' then $where$ x.expires_at < now() $where$
        when 'traffic.requests' then $where$ x.at < now() - interval '90 days' $where$
        when 'traffic.request_counts' then $where$ x.minute < now() - interval '90 days' $where$
        when 'traffic.data_points' then $where$ x.at < now() - interval '90 days' $where$
    end
$$;

create function cron.accounts_to_remove() returns setof uuid
language sql stable set search_path = '' as $$
    select a.id from public.accounts as a
    where a.deleted_at < now() - interval '30 days' and not exists (
        select from public.subscriptions as s
        where s.account_id = a.id and s.clock = 'stripe' and s.ended_at is null)
$$;

-- Removes some of them; how many it were. Who is just now being changed is left for the next time.
create function cron.remove(table_name text, rows_max integer) returns bigint
language plpgsql security definer set search_path = '' as $$
declare
    removed bigint;
begin
    execute format(
        'delete from %1$s where ctid = any (array('
        'select x.ctid from %1$s as x where %2$s limit $1 for update skip locked))',
        table_name::regclass, cron.removable(table_name)) using rows_max;
    get diagnostics removed = row_count;
    return removed;
end;
$$;

create function cron.count_removable(table_name text) returns bigint
language plpgsql stable security definer set search_path = '' as $$
declare
    found bigint;
begin
    execute format(
        'select count(*) from %s as x where %s', table_name::regclass, cron.removable(table_name))
    into found;
    return found;
end;
$$;

-- Dry runs of other jobs --------------------------------------------------------------------------

-- The same runs that runs.close_lost would end. Not in SQL, which would ask for the engine's tables now:
-- they are made later.
create function cron.count_lost_runs(older_than interval, stuck_after interval) returns bigint
language plpgsql stable security definer set search_path = '' as $$
begin
    return (
        select count(*) from public.runs as r
        where r.status in ('queued', 'processing') and r.admitted_at < now() - older_than
            and r.updated_at < now() - older_than
            and (
                (r.status = 'processing' and r.takes_turn and r.updated_at < now() - stuck_after)
                or not exists (
                    select from dbos.workflow_status as w
                    where w.workflow_uuid = r.engine_id and w.status in ('ENQUEUED', 'DELAYED', 'PENDING')
                )
            )
    );
end;
$$;

create function cron.count_lapsed_lots(out accounts bigint, out credits bigint)
language sql stable security definer set search_path = '' as $$
    select count(distinct l.account_id), coalesce(sum(l.credits_available), 0)::bigint
    from public.credit_accounts as a
    join public.credit_lots as l on l.account_id = a.account_id
    where a.next_lapse_at <= now() and l.lapses_at <= now() and l.credits_available > 0
$$;

grant execute on function
    cron.claim(text, timestamptz, uuid, text, boolean, uuid),
    cron.begin(text, timestamptz, text, integer),
    cron.finish(text, timestamptz, integer, text, jsonb, jsonb, text),
    cron.close_lost(),
    cron.remove(text, integer),
    cron.count_removable(text),
    cron.count_lost_runs(interval, interval),
    cron.count_lapsed_lots()
to service_role;
