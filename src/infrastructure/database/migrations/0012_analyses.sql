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

-- Reads of callers --------------------------------------------------------------------------------

-- The facts that a quote needs. Without an account_id the account is not visible; without a business_profile_id
-- it has no such profile.
create function caller.analysis_terms(
    claims text, chosen uuid, business_profile uuid, dedup_key text,
    out account_id uuid, out plan text, out runs_at_once integer, out light_per_hour integer,
    out bulk_max integer, out runs_at_work bigint, out credits_available bigint,
    out business_profile_id uuid, out followers_min bigint, out followers_max bigint,
    out engagement_rate_min_hundredths integer, out duplicate_run_id uuid
) language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    account uuid := caller.set_claims(claims, chosen);
    balance record := caller.credit_balance(claims, account);
begin
    credits_available := balance.credits_available;
    select a.id, p.name, p.runs_at_once, p.light_per_hour, p.bulk_max
    into account_id, plan, runs_at_once, light_per_hour, bulk_max
    from public.accounts as a join public.plans as p on p.name = a.plan
    where a.id = account;
    select b.id, b.followers_min, b.followers_max, b.engagement_rate_min_hundredths
    into business_profile_id, followers_min, followers_max, engagement_rate_min_hundredths
    from public.business_profiles as b
    where b.account_id = account and b.id = business_profile and b.deleted_at is null;
    select count(*) into runs_at_work from public.runs as r
    where r.account_id = account and r.uses_concurrency_slot and r.admitted_at is not null
        and r.status in ('queued', 'processing', 'paused');
    select r.id into duplicate_run_id from public.runs as r
    where r.account_id = account and r.dedup_key = analysis_terms.dedup_key
        and r.status in ('queued', 'processing', 'paused');
end;
$$;

-- Results of the account's own runs for a profile in the last 24 hours, the newest first. A quote uses them
-- instead of the profile cache, which all accounts share. An analysis has its facts; a rejected run has only its
-- outcome, and a violation counts for the same business profile while that is unchanged.
create function caller.profile_fetches(
    claims text, chosen uuid, business_profile uuid, of_username text
) returns table (analysis_type text, outcome text, scraped_at timestamptz, facts jsonb)
language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
    account uuid := caller.set_claims(claims, chosen);
    since timestamptz := clock_timestamp() - interval '24 hours';
begin
    return query
    select s.analysis_type, 'ok', s.scraped_at, s.result -> 'facts'
    from public.leads as l
    join public.analyses as s on s.account_id = l.account_id and s.lead_id = l.id
    where l.account_id = account and l.username = of_username and l.deleted_at is null
        and s.deleted_at is null and s.scraped_at > since
    union all
    select r.subject ->> 'type', r.outcome, r.ended_at, null
    from public.runs as r
    where r.account_id = account and r.created_at > since and r.status = 'failed'
        and r.kind in ('light_analysis', 'deep_analysis', 'xray_analysis')
        and r.subject ->> 'username' = of_username
        and (r.outcome in ('private', 'not_found', 'restricted')
            or r.outcome = 'icp_violation' and exists (
                select from public.business_profiles as b
                where b.account_id = account and b.id = business_profile
                    and b.id = (r.subject ->> 'business_profile_id')::uuid and b.updated_at <= r.created_at))
    order by 3 desc;
end;
$$;

-- A bulk run with a page of its items after a position, each with the status of its own run. Without an
-- account_id the account is not visible; without a run_id it has no such bulk run.
create function caller.bulk_analysis(
    claims text, chosen uuid, bulk uuid, after_position integer, items_max integer,
    out account_id uuid, out run_id uuid, out status text, out progress smallint, out current_step text,
    out subject jsonb, out created_at timestamptz, out ended_at timestamptz, out counts jsonb,
    out items jsonb, out rejections jsonb
) language plpgsql set search_path = '' as $$
#variable_conflict use_variable
declare
    account uuid := caller.set_claims(claims, chosen);
begin
    select a.id, r.id, r.status, r.progress, r.current_step, r.subject, r.created_at, r.ended_at
    into account_id, run_id, status, progress, current_step, subject, created_at, ended_at
    from public.accounts as a
    left join public.runs as r on r.account_id = a.id and r.id = bulk and r.kind = 'bulk_analysis'
    where a.id = account;
    if run_id is null then
        return;
    end if;
    with found as (
        select i.position, i.username, i.item_run_id as run_id,
            case
                when r.ended_at is not null then r.status
                -- A bulk run that was cancelled before it began has recorded nothing.
                when i.status = 'waiting' and bulk_analysis.status = 'cancelled' then 'cancelled'
                when i.status = 'waiting' and bulk_analysis.ended_at is not null then 'skipped'
                else i.status
            end as status,
            coalesce(r.outcome, i.outcome) as outcome
        from public.bulk_items as i
        left join public.runs as r on r.account_id = i.account_id and r.id = i.item_run_id
        where i.account_id = account and i.run_id = bulk
    ), page as (
        select * from found as f where f.position > after_position order by f.position limit items_max
    )
    select
        (select jsonb_object_agg(c.status, c.count)
            from (select f.status, count(*) from found as f group by 1) as c),
        (select jsonb_agg(p order by p.position) from page as p)
    into counts, items;
    select jsonb_agg(to_jsonb(r) - 'account_id' - 'run_id' order by r.position) into rejections
    from public.bulk_rejections as r where r.account_id = account and r.run_id = bulk;
end;
$$;

grant execute on function
    runs.start_analysis(uuid, uuid, text, jsonb, bigint, text, uuid, uuid, integer)
to service_role;

grant execute on function
    caller.analysis_terms(text, uuid, uuid, text),
    caller.profile_fetches(text, uuid, uuid, text),
    caller.bulk_analysis(text, uuid, uuid, integer, integer)
to app_user;
