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

grant execute on function leads.save(jsonb, jsonb) to service_role;
