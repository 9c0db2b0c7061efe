-- The businesses for which an account works. Members write this table themselves: row level security lets them insert
-- and update in their own accounts, and only the columns that a tenant may change.

create table public.business_profiles (
    account_id uuid not null references public.accounts (id) on delete cascade,
    id uuid not null,
    version integer not null default 1 check (version > 0),
    name text not null check (length(name) between 1 and 200),
    website text check (length(website) between 1 and 500),
    industry text check (length(industry) between 1 and 200),
    summary text check (length(summary) between 1 and 500),
    offering text check (length(offering) between 1 and 4000),
    target_audience text check (length(target_audience) between 1 and 4000),
    value_proposition text check (length(value_proposition) between 1 and 2000),
    tone text check (length(tone) between 1 and 200),
    outreach_goal text check (length(outreach_goal) between 1 and 500),
    language text check (length(language) between 2 and 35),
    followers_min bigint check (followers_min between 0 and 10000000000),
    followers_max bigint check (followers_max between 0 and 10000000000),
    -- Hundredths of a percent: integers have no NaN.
    engagement_rate_min_hundredths integer check (engagement_rate_min_hundredths between 0 and 10000),
    niches text[] not null default '{}' check (cardinality(niches) <= 50),
    content_themes text[] not null default '{}' check (cardinality(content_themes) <= 50),
    geographies text[] not null default '{}' check (cardinality(geographies) <= 50),
    exclusions text[] not null default '{}' check (cardinality(exclusions) <= 50),
    created_by text not null check (length(created_by) between 1 and 100),
    -- Not the start of the transaction, which may be earlier than the wait for a concurrent insert.
    created_at timestamptz not null default statement_timestamp(),
    updated_at timestamptz not null default statement_timestamp(),
    deleted_at timestamptz,
    primary key (account_id, id),
    check (followers_min <= followers_max)
);

create index business_profiles_by_age on public.business_profiles (account_id, created_at desc, id desc)
    where deleted_at is null;
create index business_profiles_deleted_by_age
    on public.business_profiles (account_id, created_at desc, id desc) where deleted_at is not null;

-- For the retention job.
create index business_profiles_by_deletion on public.business_profiles (deleted_at)
    where deleted_at is not null;

-- A profile never changes its account, id or origin.
call private.protect_table('public.business_profiles', 'select, insert, update, delete',
    'select, insert, update (version, name, website, industry, summary, offering, target_audience, value_proposition,
        tone, outreach_goal, language, followers_min, followers_max, engagement_rate_min_hundredths, niches,
        content_themes, geographies, exclusions, updated_at, deleted_at)');

-- No row: the account is not visible. A row without an id: the account has no such profile.
create function caller.business_profile(claims text, chosen uuid, profile uuid)
returns setof public.business_profiles language plpgsql set search_path = '' as $$
declare
    account uuid := caller.set_claims(claims, chosen);
begin
    return query
    select b.* from public.accounts as a
    left join public.business_profiles as b
        on b.account_id = a.id and b.id = profile and b.deleted_at is null
    where a.id = account;
end;
$$;

-- Newest first, after the cursor if there is one. Rows as above. With deleted_within: profiles that were deleted
-- within this time.
create function caller.business_profiles(
    claims text, chosen uuid, deleted_within interval, before_at timestamptz, before_id uuid,
    profiles_max integer
) returns setof public.business_profiles language plpgsql set search_path = '' as $$
declare
    account uuid := caller.set_claims(claims, chosen);
begin
    before_at := coalesce(before_at, 'infinity');
    before_id := coalesce(before_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
    if deleted_within is null then
        return query
        select b.* from public.accounts as a
        left join lateral (
            select * from public.business_profiles as p
            where p.account_id = account and p.deleted_at is null
                and (p.created_at, p.id) < (before_at, before_id)
            order by p.created_at desc, p.id desc
            limit profiles_max
        ) as b on true
        where a.id = account
        order by b.created_at desc, b.id desc;
    else
        return query
        select b.* from public.accounts as a
        left join lateral (
            select * from public.business_profiles as p
            where p.account_id = account and p.deleted_at > clock_timestamp() - deleted_within
                and (p.created_at, p.id) < (before_at, before_id)
            order by p.created_at desc, p.id desc
            limit profiles_max
        ) as b on true
        where a.id = account
        order by b.created_at desc, b.id desc;
    end if;
end;
$$;

grant execute on function
    caller.business_profile(text, uuid, uuid),
    caller.business_profiles(text, uuid, interval, timestamptz, uuid, integer)
to app_user;
