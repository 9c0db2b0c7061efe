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
