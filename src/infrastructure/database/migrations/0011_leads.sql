-- Leads: the profiles that an account has had analysed for one of its businesses, and every analysis of them. The
-- service role writes both through leads.save; members may only delete and restore them.

create schema leads;
grant usage on schema leads to service_role;

create table public.leads (
    account_id uuid not null references public.accounts (id) on delete cascade,
    id uuid not null default gen_random_uuid(),
    business_profile_id uuid not null,
    platform text not null check (platform = 'instagram'),
    username text collate "C" not null check (username ~ '^[a-z0-9._]{1,30}$'),
    full_name text not null,
    biography text not null,
    followers bigint not null check (followers >= 0),
    following bigint not null check (following >= 0),
    posts_count bigint not null check (posts_count >= 0),
    is_verified boolean not null,
    is_business boolean not null,
    category text not null,
    picture_url text not null,
    external_urls text[] not null,
    tier text not null check (tier in ('hot', 'warm', 'cool', 'cold')),
    score integer not null check (score between 0 and 100),
    niche text not null,
    -- Folded by the domain, because the case folding of servers differs by locale.
    search_text text not null,
    niche_key text not null,
    -- No foreign key: the analysis refers to the lead, and leads.save writes both.
    last_analysis_id uuid not null,
    last_analysis_type text not null check (last_analysis_type in ('light', 'deep', 'xray')),
    last_analysed_at timestamptz not null,
    scraped_at timestamptz not null,  -- the time of the data
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz,
    version integer not null default 1 check (version > 0),
    primary key (account_id, id),
    foreign key (account_id, business_profile_id)
        references public.business_profiles (account_id, id) on delete cascade
);

create unique index leads_by_key on public.leads (account_id, business_profile_id, platform, username)
    where deleted_at is null;

-- One index per frequent sort order; other orders sort the account's leads, which are few. A search reads all
-- leads of the account: the embedded server has no pg_trgm.
create index leads_by_analysis on public.leads (account_id, last_analysed_at desc, id desc)
    where deleted_at is null;
create index leads_by_score on public.leads (account_id, score desc, id desc) where deleted_at is null;
create index leads_by_name on public.leads (account_id, username, id) where deleted_at is null;

-- For the retention job.
create index leads_by_deletion on public.leads (deleted_at) where deleted_at is not null;

create table public.analyses (
    account_id uuid not null references public.accounts (id) on delete cascade,
    -- The id of its run. No foreign key: a run may be purged before its analysis.
    id uuid not null,
    lead_id uuid not null,
    business_profile_id uuid not null,
    username text collate "C" not null,
    analysis_type text not null check (analysis_type in ('light', 'deep', 'xray')),
    status text not null default 'completed' check (status = 'completed'),  -- other results are only in the run
    score integer not null check (score between 0 and 100),
    tier text not null check (tier in ('hot', 'warm', 'cool', 'cold')),
    niche_fit integer not null check (niche_fit between 0 and 100),
    engagement integer not null check (engagement between 0 and 100),
    confidence integer not null check (confidence between 0 and 100),
    niche text not null,
    result jsonb not null check (jsonb_typeof(result) = 'object'),  -- the complete analysis
    is_cached boolean not null,
    is_simulated boolean not null,
    user_id uuid,
    scraped_at timestamptz not null,
    created_at timestamptz not null,
    deleted_at timestamptz,  -- with its lead
    primary key (account_id, id),
    foreign key (account_id, lead_id) references public.leads (account_id, id) on delete cascade
);

create index analyses_by_age on public.analyses (account_id, created_at desc, id desc)
    where deleted_at is null;
create index analyses_by_lead on public.analyses (account_id, lead_id, created_at desc, id desc);
create index analyses_by_status on public.analyses (account_id, status);

call private.protect_table(
    'public.leads', 'select, insert, update, delete', 'select, update (deleted_at, updated_at, version)');
call private.protect_table('public.analyses', 'select, insert, update, delete', 'select, update (deleted_at)');

-- Saves a lead and its analysis, given as rows of their tables. An existing lead is updated unless its data is
-- newer; a missing or deleted lead is inserted. Idempotent: the same analysis again returns the same result and
-- changes nothing.
create function leads.save(lead jsonb, analysis jsonb, out lead_id uuid, out is_new boolean)
language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
    new_lead public.leads := jsonb_populate_record(null::public.leads, lead);
    new_analysis public.analyses := jsonb_populate_record(null::public.analyses, analysis);
    at timestamptz := clock_timestamp();
begin
    -- Repetitions of one analysis wait for each other here, so that the lookup below stays valid.
    perform pg_advisory_xact_lock(hashtextextended('analysis:' || new_analysis.account_id || new_analysis.id, 0));
    select a.lead_id, a.created_at = l.created_at into save.lead_id, save.is_new
    from public.analyses as a
    join public.leads as l on l.account_id = a.account_id and l.id = a.lead_id
    where a.account_id = new_analysis.account_id and a.id = new_analysis.id;
    if found then
        return;
    end if;
    -- Concurrent inserts of one lead wait for each other here; the later one reads the clock again.
    insert into public.leads as l (
        account_id, business_profile_id, platform, username, full_name, biography, followers, following,
        posts_count, is_verified, is_business, category, picture_url, external_urls, tier, score, niche,
        search_text, niche_key, last_analysis_id, last_analysis_type, last_analysed_at, scraped_at,
        created_at, updated_at
    ) values (
        new_lead.account_id, new_lead.business_profile_id, new_lead.platform, new_lead.username,
        new_lead.full_name, new_lead.biography, new_lead.followers, new_lead.following,
        new_lead.posts_count, new_lead.is_verified, new_lead.is_business, new_lead.category,
        new_lead.picture_url, new_lead.external_urls, new_lead.tier, new_lead.score, new_lead.niche,
        new_lead.search_text, new_lead.niche_key, new_analysis.id, new_analysis.analysis_type, at,
        new_lead.scraped_at, at, at
    )
    on conflict (account_id, business_profile_id, platform, username) where deleted_at is null
        do update set version = l.version + 1, updated_at = clock_timestamp()
    returning l.id, l.version = 1, l.updated_at into save.lead_id, save.is_new, at;
    update public.leads as l
    set full_name = new_lead.full_name, biography = new_lead.biography, followers = new_lead.followers,
        following = new_lead.following, posts_count = new_lead.posts_count,
        is_verified = new_lead.is_verified, is_business = new_lead.is_business,
        category = new_lead.category, picture_url = new_lead.picture_url,
        external_urls = new_lead.external_urls, tier = new_lead.tier, score = new_lead.score,
        niche = new_lead.niche, search_text = new_lead.search_text, niche_key = new_lead.niche_key,
        last_analysis_id = new_analysis.id, last_analysis_type = new_analysis.analysis_type,
        last_analysed_at = at, scraped_at = new_lead.scraped_at
    where not save.is_new and l.account_id = new_lead.account_id and l.id = save.lead_id
        and l.scraped_at <= new_lead.scraped_at;
    insert into public.analyses (
        account_id, id, lead_id, business_profile_id, username, analysis_type, score, tier, niche_fit,
        engagement, confidence, niche, result, is_cached, is_simulated, user_id, scraped_at, created_at
    ) values (
        new_analysis.account_id, new_analysis.id, save.lead_id, new_analysis.business_profile_id,
        new_analysis.username, new_analysis.analysis_type, new_analysis.score, new_analysis.tier,
        new_analysis.niche_fit, new_analysis.engagement, new_analysis.confidence, new_analysis.niche,
        new_analysis.result, new_analysis.is_cached, new_analysis.is_simulated, new_analysis.user_id,
        new_analysis.scraped_at, at
    );
end;
$$;

-- Reads of callers --------------------------------------------------------------------------------

-- Without the result, which is long.
create type caller.analysis_entry as (
    id uuid,
    lead_id uuid,
    business_profile_id uuid,
    username text,
    analysis_type text,
    status text,
    score integer,
    tier text,
    niche_fit integer,
    engagement integer,
    confidence integer,
    niche text,
    is_cached boolean,
    is_simulated boolean,
    user_id uuid,
    scraped_at timestamptz,
    created_at timestamptz
);

-- After the cursor, in one of the orders below; null means no condition. No row: the account is not visible. A
-- row without an id: no lead matches. With deleted_within: leads that were deleted within this time. sort is
-- chosen by our code, never by a client; the query is planned for the given conditions each time.
create function caller.leads(
    claims text, chosen uuid, of_business uuid, tiers text[], score_min integer, score_max integer,
    of_niche text, words text, of_type text, deleted_within interval, sort text, after_value text,
    after_id uuid, leads_max integer
) returns setof public.leads language plpgsql set search_path = '' as $$
declare
    account uuid := caller.set_claims(claims, chosen);
    sorted_by text := ltrim(sort, '-');
    is_descending boolean := starts_with(sort, '-');
    direction text := case when is_descending then 'desc' else 'asc' end;
begin
    assert sort in ('-last_analysed_at', '-score', 'score', 'username', '-followers'), sort;
    return query execute format(
        $query$
            select l.* from public.accounts as a
            left join lateral (
                select * from public.leads as p
                where p.account_id = $1
                    and case when $2 is null then p.deleted_at is null
                        else p.deleted_at > clock_timestamp() - $2 end
                    and ($3 is null or p.business_profile_id = $3)
                    and ($4 is null or p.tier = any ($4))
                    and ($5 is null or p.score >= $5)
                    and ($6 is null or p.score <= $6)
                    and ($7 is null or p.niche_key = $7)
                    and ($8 is null or strpos(p.search_text, $8) > 0)
                    and ($9 is null or p.last_analysis_type = $9)
                    and ($10 is null or (p.%1$I, p.id) %2$s ($10::%3$s, $11))
                order by p.%1$I %4$s, p.id %4$s
                limit $12
            ) as l on true
            where a.id = $1
            order by l.%1$I %4$s, l.id %4$s
        $query$,
        sorted_by,
        case when is_descending then '<' else '>' end,
        case sorted_by when 'last_analysed_at' then 'timestamptz' when 'username' then 'text'
            else 'bigint' end,
        direction)
    using account, deleted_within, of_business, tiers, score_min, score_max, of_niche, words, of_type,
        after_value, after_id, leads_max;
end;
$$;

-- The lead, its last analysis, and the snapshots of the last two analyses for comparison. No row: the account is
-- not visible. A row without a lead: it does not exist or is deleted.
create function caller.lead(claims text, chosen uuid, wanted uuid)
returns table (lead public.leads, latest caller.analysis_entry, after jsonb, before jsonb)
language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
    account uuid := caller.set_claims(claims, chosen);
begin
    return query
    select l, n.entry, n.snapshot, b.snapshot
    from public.accounts as a
    left join public.leads as l on l.account_id = a.id and l.id = wanted and l.deleted_at is null
    left join lateral (
        select
            row(
                s.id, s.lead_id, s.business_profile_id, s.username, s.analysis_type, s.status, s.score,
                s.tier, s.niche_fit, s.engagement, s.confidence, s.niche, s.is_cached, s.is_simulated,
                s.user_id, s.scraped_at, s.created_at
            )::caller.analysis_entry as entry,
            jsonb_build_object(
                'analysis_type', s.analysis_type, 'analysed_at', s.scraped_at,
                'facts', s.result -> 'facts', 'score', s.result -> 'score') as snapshot
        from public.analyses as s
        where s.account_id = l.account_id and s.id = l.last_analysis_id
    ) as n on true
    left join lateral (
        select jsonb_build_object(
            'analysis_type', s.analysis_type, 'analysed_at', s.scraped_at,
            'facts', s.result -> 'facts', 'score', s.result -> 'score') as snapshot
        from public.analyses as s
        where s.account_id = l.account_id and s.lead_id = l.id and s.id <> l.last_analysis_id
        order by s.scraped_at desc, s.created_at desc, s.id
        limit 1
    ) as b on true
    where a.id = account;
end;
$$;

-- Newest first, after the cursor, within the history of the account's plan. known_lead is null if the lead does
-- not exist. Rows as above. Planned each time: with and without a lead need different plans.
create function caller.analyses(
    claims text, chosen uuid, of_lead uuid, of_business uuid, of_type text, before_at timestamptz,
    before_id uuid, analyses_max integer
) returns table (known_lead uuid, entry caller.analysis_entry)
language plpgsql set search_path = '' set plan_cache_mode = 'force_custom_plan' as $$
#variable_conflict use_column
declare
    account uuid := caller.set_claims(claims, chosen);
begin
    before_at := coalesce(before_at, 'infinity');
    before_id := coalesce(before_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
    return query
    select l.id, e.entry
    from public.accounts as a
    join public.plans as p on p.name = a.plan
    left join public.leads as l on l.account_id = a.id and l.id = of_lead and l.deleted_at is null
    left join lateral (
        select s.created_at, s.id, row(
            s.id, s.lead_id, s.business_profile_id, s.username, s.analysis_type, s.status, s.score, s.tier,
            s.niche_fit, s.engagement, s.confidence, s.niche, s.is_cached, s.is_simulated, s.user_id,
            s.scraped_at, s.created_at
        )::caller.analysis_entry as entry
        from public.analyses as s
        where s.account_id = account and s.deleted_at is null
            and (s.created_at, s.id) < (before_at, before_id)
            and (p.history_days is null
                or s.created_at > clock_timestamp() - make_interval(days => p.history_days))
            and (of_lead is null or s.lead_id = of_lead)
            and (of_business is null or s.business_profile_id = of_business)
            and (of_type is null or s.analysis_type = of_type)
        order by s.created_at desc, s.id desc
        limit analyses_max
    ) as e on true
    where a.id = account
    order by e.created_at desc, e.id desc;
end;
$$;

-- Rows as above, without a limit of age.
create function caller.analysis(claims text, chosen uuid, wanted uuid)
returns table (id uuid, lead_id uuid, created_at timestamptz, result jsonb)
language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
    account uuid := caller.set_claims(claims, chosen);
begin
    return query
    select s.id, s.lead_id, s.created_at, s.result
    from public.accounts as a
    left join public.analyses as s on s.account_id = a.id and s.id = wanted and s.deleted_at is null
    where a.id = account;
end;
$$;

-- Deletion and restoration by callers -------------------------------------------------------------

-- Soft-deletes the lead and its analyses. No row: the account is not visible.
create function caller.delete_lead(claims text, chosen uuid, wanted uuid)
returns table (is_deleted boolean) language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
    account uuid := caller.set_claims(claims, chosen);
    at timestamptz := clock_timestamp();
begin
    if not exists (select from public.accounts as a where a.id = account) then
        return;
    end if;
    update public.leads as l set deleted_at = at, updated_at = at, version = l.version + 1
    where l.account_id = account and l.id = wanted and l.deleted_at is null;
    delete_lead.is_deleted := found;
    -- A separate statement, which sees analyses that were saved while the one above waited for the lead.
    update public.analyses as s set deleted_at = at
    where delete_lead.is_deleted and s.account_id = account and s.lead_id = wanted;
    return next;
end;
$$;

-- outcome: done (also if it was not deleted) | unknown (or its retention has ended) | taken (another lead has
-- its key). No row: the account is not visible.
create function caller.restore_lead(claims text, chosen uuid, wanted uuid, deleted_within interval)
returns table (outcome text, lead public.leads) language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
    account uuid := caller.set_claims(claims, chosen);
    at timestamptz := clock_timestamp();
begin
    if not exists (select from public.accounts as a where a.id = account) then
        return;
    end if;
    restore_lead.outcome := 'unknown';
    select * into restore_lead.lead from public.leads as l
    where l.account_id = account and l.id = wanted
        and (l.deleted_at is null or l.deleted_at > at - deleted_within)
    for no key update;
    if found then
        restore_lead.outcome := 'done';
    end if;
    if restore_lead.lead.deleted_at is not null then
        begin
            update public.leads as l set deleted_at = null, updated_at = at, version = l.version + 1
            where l.account_id = account and l.id = wanted
            returning * into restore_lead.lead;
            update public.analyses as s set deleted_at = null
            where s.account_id = account and s.lead_id = wanted;
        exception when unique_violation then
            restore_lead.outcome := 'taken';
        end;
    end if;
    return next;
end;
$$;

grant execute on function leads.save(jsonb, jsonb) to service_role;

grant execute on function
    caller.leads(
        text, uuid, uuid, text[], integer, integer, text, text, text, interval, text, text, uuid, integer),
    caller.lead(text, uuid, uuid),
    caller.analyses(text, uuid, uuid, uuid, text, timestamptz, uuid, integer),
    caller.analysis(text, uuid, uuid),
    caller.delete_lead(text, uuid, uuid),
    caller.restore_lead(text, uuid, uuid, interval)
to app_user;
