-- How analyses start: one, a bulk, and without an account.

-- Bulk runs ---------------------------------------------------------------------------------------

-- One row per accepted username of a bulk run. Its item run has the current status; this row has what the bulk
-- run has recorded of it.
create table public.bulk_items (
    account_id uuid not null,
    run_id uuid not null,
    position integer not null check (position > 0),  -- in the request, from 1
    username text not null check (length(username) between 1 and 30),
    item_run_id uuid,  -- null: not started, or purged
    status text not null default 'waiting'
        check (status in ('waiting', 'started', 'completed', 'failed', 'cancelled', 'skipped')),
    outcome text check (outcome ~ '^[a-z][a-z0-9_]{0,59}$'),
    primary key (account_id, run_id, position),
    unique (account_id, run_id, username),
    foreign key (account_id, run_id) references public.runs (account_id, id) on delete cascade,
    foreign key (account_id, item_run_id)
        references public.runs (account_id, id) on delete set null (item_run_id),
    check (item_run_id is null or status <> 'waiting'),
    check (outcome is null or status not in ('waiting', 'started'))
) with (fillfactor = 80);

create index bulk_items_by_run on public.bulk_items (account_id, item_run_id)
    where item_run_id is not null;

-- Rejected rows of the request with the reason.
create table public.bulk_rejections (
    account_id uuid not null,
    run_id uuid not null,
    position integer not null check (position > 0),
    text text not null check (length(text) <= 100),
    code text not null check (code ~ '^[a-z][a-z0-9_]{0,59}$'),
    reason text not null check (length(reason) between 1 and 500),
    primary key (account_id, run_id, position),
    foreign key (account_id, run_id) references public.runs (account_id, id) on delete cascade
);

call private.protect_table('public.bulk_items', 'select, insert, update', 'select');
call private.protect_table('public.bulk_rejections', 'select, insert', 'select');

-- Prices ------------------------------------------------------------------------------------------

create table public.analysis_costs (
    type text primary key check (type in ('light', 'deep', 'xray')),
    credits bigint not null check (credits >= 0)
);

insert into public.analysis_costs (type, credits) values ('light', 1), ('deep', 5), ('xray', 6);

call private.protect_table('public.analysis_costs', 'select, insert, update, delete');

create policy members_read on public.analysis_costs for select to app_user
    using (cardinality(array(select private.member_account_ids())) > 0);
grant select on public.analysis_costs to app_user;

-- Anonymous analyses ------------------------------------------------------------------------------

-- The account of anonymous runs. It has no credits and no members, and it cannot be deleted. Its plan limits the
-- concurrent runs and the runs per hour of all visitors together.
insert into public.accounts (id, name, plan)
values ('00000000-0000-4000-8000-000000000000', 'Visitors without an account', 'pro');
insert into public.credit_accounts (account_id) values ('00000000-0000-4000-8000-000000000000');

-- One row per run, however many visitors wait for it.
create table public.anonymous_analyses (
    run_id uuid primary key,
    result jsonb check (jsonb_typeof(result) = 'object'),  -- null: none yet, or the run failed
    created_at timestamptz not null default clock_timestamp(),
    expires_at timestamptz not null  -- of the last token
);

create index anonymous_analyses_by_expiry on public.anonymous_analyses (expires_at);

-- One token per visitor. The hash cannot be used to read the result.
create table public.anonymous_tokens (
    token_hash bytea primary key check (octet_length(token_hash) = 32),
    run_id uuid not null references public.anonymous_analyses (run_id) on delete cascade,
    expires_at timestamptz not null
);

create index anonymous_tokens_by_run on public.anonymous_tokens (run_id);

call private.protect_table('public.anonymous_analyses', 'select, insert, update, delete');
call private.protect_table('public.anonymous_tokens', 'select, insert');

-- Start -------------------------------------------------------------------------------------------

-- The time at which the account may start the next light analysis, or null for now: its plan limits those of any
-- hour. Items of a bulk run have a limit of their own. The account's credits must be locked.
create function runs.next_light_at(account uuid, per_hour integer) returns timestamptz
language sql stable set search_path = '' as $$
    select r.created_at + interval '1 hour' from public.runs as r
    where r.account_id = account and r.kind in ('light_analysis', 'anonymous_analysis')
        and r.parent_id is null
        and r.created_at > clock_timestamp() - interval '1 hour'
    order by r.created_at desc
    offset per_hour - 1
    limit 1
$$;

-- The reason why an analysis may not start or be retried: it needs a valid key, an existing business profile,
-- and room in the plan. The account's credits must be locked.
-- outcome: null | unknown_key | test_key | unknown_business | light_limited. bound: the plan's runs per hour if
-- they are used up; the next run may start in wait_s.
create function runs.analysis_rejection(
    account uuid, kind text, subject jsonb, dedup_key text, api_key uuid,
    out outcome text, out bound bigint, out wait_s double precision
) language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    business uuid := (subject ->> 'business_profile_id')::uuid;
begin
    if api_key is not null and not exists (
        select from public.api_keys as k
        join public.accounts as a on a.id = k.account_id and a.deleted_at is null
        where k.account_id = account and k.id = api_key and k.revoked_at is null
            and (k.expires_at is null or k.expires_at > clock_timestamp())
    ) then
        outcome := 'unknown_key';
    elsif ledger.is_test_key(account, api_key) then
        outcome := 'test_key';
    elsif business is not null and not exists (
        select from public.business_profiles as b
        where b.account_id = account and b.id = business and b.deleted_at is null
    ) then
        outcome := 'unknown_business';
    elsif kind in ('light_analysis', 'anonymous_analysis') and not exists (
        select from public.runs as r
        where r.account_id = account and r.dedup_key = analysis_rejection.dedup_key
            and r.status in ('queued', 'processing', 'paused')
    ) then
        select p.light_per_hour into bound
        from public.accounts as a join public.plans as p on p.name = a.plan where a.id = account;
        wait_s := extract(epoch from runs.next_light_at(account, bound::integer) - clock_timestamp());
        if wait_s is not null then
            outcome := 'light_limited';
        end if;
    end if;
end;
$$;

-- Copies the items and rejected rows of a bulk run to the run that retries it. Other runs have none.
create function runs.copy_items(account uuid, from_run uuid, to_run uuid) returns void
language sql set search_path = '' as $$
    insert into public.bulk_items (account_id, run_id, position, username)
    select i.account_id, to_run, i.position, i.username from public.bulk_items as i
    where i.account_id = account and i.run_id = from_run;
    insert into public.bulk_rejections (account_id, run_id, position, text, code, reason)
    select r.account_id, to_run, r.position, r.text, r.code, r.reason from public.bulk_rejections as r
    where r.account_id = account and r.run_id = from_run;
$$;

-- Starts the run of one analysis if no rule forbids it. Idempotent: the same id again returns the same run,
-- whatever has changed meanwhile.
-- outcome: as of runs.start and runs.analysis_rejection. bound: the monthly credits of a key that reached its
-- limit, or as of runs.analysis_rejection.
create function runs.start_analysis(
    account uuid, id uuid, kind text, subject jsonb, credits bigint, dedup_key text, user_id uuid,
    api_key uuid, refund_policy integer,
    out outcome text, out run_id uuid, out status text, out credits_held bigint,
    out credits_available bigint, out bound bigint, out wait_s double precision
) language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    run public.runs;
    rejection record;
    started runs.result;
begin
    -- Concurrent starts of one account wait here, so that the counts below stay valid.
    perform ledger.lock_account(account);
    select * into run from public.runs as r where r.account_id = account and r.id = start_analysis.id;
    if found then
        outcome := 'repeated';
        run_id := run.id;
        status := run.status;
        credits_held := run.credits_held;
        return;
    end if;
    rejection := runs.analysis_rejection(account, kind, subject, dedup_key, api_key);
    if rejection.outcome is not null then
        outcome := rejection.outcome;
        bound := rejection.bound;
        wait_s := rejection.wait_s;
        return;
    end if;
    started := runs.start(
        account, id, kind, subject, credits, 'analysis', 'runs', dedup_key => dedup_key,
        user_id => user_id, api_key => api_key, refund_policy => refund_policy);
    outcome := started.outcome;
    run_id := (started.run).id;
    status := (started.run).status;
    credits_held := (started.run).credits_held;
    credits_available := started.credits_available;
    if outcome = 'key_capped' then
        select k.credits_per_month_max into bound from public.api_keys as k
        where k.account_id = account and k.id = api_key;
    end if;
end;
$$;

grant execute on function
    runs.start_analysis(uuid, uuid, text, jsonb, bigint, text, uuid, uuid, integer)
to service_role;
