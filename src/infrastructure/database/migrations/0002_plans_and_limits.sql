-- What a plan allows and costs, as data: an operator changes a row, not the program.

create table public.plans (
    name text primary key check (name ~ '^[a-z][a-z_]{0,39}$'),
    business_profiles_max integer check (business_profiles_max >= 0),  -- null: no limit
    queue_priority smallint not null default 4 check (queue_priority between 1 and 100),
    runs_at_once integer not null default 1 check (runs_at_once > 0),
    bulk_max integer not null default 5 check (bulk_max > 0),
    light_per_hour integer not null default 5 check (light_per_hour > 0),
    history_days integer check (history_days > 0),  -- null: no limit
    title text not null default '' check (length(title) <= 100),
    rank smallint unique,  -- the larger of two plans has the higher rank; null: not offered
    monthly_credits bigint not null default 0 check (monthly_credits between 0 and 1000000000),
    price_cents integer not null default 0 check (price_cents >= 0),  -- a month; 0: not sold
    currency text not null default 'usd' check (currency ~ '^[a-z]{3}$')
);

insert into public.plans (
    name, business_profiles_max, queue_priority, runs_at_once, bulk_max, light_per_hour, history_days, title, rank,
    monthly_credits, price_cents
) values
    ('free', 1, 4, 1, 5, 5, 30, 'Free', 0, 10, 0),
    ('growth', 3, 3, 2, 25, 25, 60, 'Growth', 1, 250, 2900),
    ('pro', 10, 2, 5, 100, 150, 180, 'Pro', 2, 1500, 9900),
    ('agency', 50, 2, 10, 250, 500, 365, 'Agency', 3, 5000, 29900),
    ('enterprise', null, 1, 20, 500, 2000, null, 'Enterprise', 4, 20000, 99900);

-- How many requests of a class in how many seconds. A plan without a row of its own has the free one's.
create table public.rate_limits (
    plan text not null references public.plans (name) on delete cascade,
    route_class text not null check (route_class ~ '^[a-z][a-z_]{0,39}$'),
    requests_max integer not null check (requests_max between 1 and 1000000000),
    window_s integer not null check (window_s between 1 and 86400),
    primary key (plan, route_class)
);

insert into public.rate_limits (plan, route_class, requests_max, window_s) values
    ('free', 'general', 60, 60),
    ('free', 'read', 120, 60),
    ('free', 'write', 30, 60),
    ('free', 'public', 30, 60),
    ('free', 'unknown_route', 60, 60),
    ('free', 'health', 120, 60),
    ('free', 'analysis', 30, 3600),
    ('free', 'bulk', 10, 3600),
    ('free', 'progress', 300, 60),
    ('free', 'anonymous', 5, 3600),
    ('free', 'stripe', 100, 60),
    ('free', 'sign_in', 20, 60),
    ('free', 'refresh', 60, 3600),
    ('free', 'purchase', 10, 3600);

insert into public.rate_limits (plan, route_class, requests_max, window_s)
select p.name, l.route_class, l.requests_max * p.times, l.window_s
from public.rate_limits as l
cross join (values ('growth', 2), ('pro', 5), ('agency', 10), ('enterprise', 20)) as p (name, times)
where l.plan = 'free' and l.route_class in ('general', 'read', 'write', 'analysis', 'bulk', 'progress');

call private.protect_table('public.plans', 'select, insert, update, delete');
call private.protect_table('public.rate_limits', 'select, insert, update, delete');

-- Plans are no secret, but only members read them.
create policy members_read on public.plans for select to app_user
    using (cardinality(array(select private.member_account_ids())) > 0);
grant select on public.plans to app_user;
