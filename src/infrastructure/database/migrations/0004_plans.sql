-- What a plan allows, as data: an operator changes a row, not the program.

create table public.plans (
    name text primary key check (name ~ '^[a-z][a-z_]{0,39}$'),
    business_profiles_max integer check (business_profiles_max >= 0)  -- null: as many as they like
);

insert into public.plans (name, business_profiles_max) values
    ('free', 1), ('growth', 3), ('pro', 10), ('agency', 50), ('enterprise', null);

alter table public.accounts add column plan text not null default 'free' references public.plans (name);

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

-- Prices and limits are no secret, but only the application reads them.
alter table public.plans enable row level security;
alter table public.plans force row level security;
alter table public.rate_limits enable row level security;
alter table public.rate_limits force row level security;
create policy members_read on public.plans for select to app_user
    using (cardinality(array(select private.member_account_ids())) > 0);
revoke all on public.plans, public.rate_limits from public, anon, authenticated, service_role;
grant select on public.plans to app_user;
grant select, insert, update, delete on public.plans, public.rate_limits to service_role;
