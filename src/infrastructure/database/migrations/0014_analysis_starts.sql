-- How analyses begin: one by one, many at once, and without an account.

-- Many at once --------------------------------------------------------------------------------------

-- The rows of a bulk run, one for each username it accepted. Its own run says how each of them is; what is
-- noted here is what the bulk run has seen of it so far.
create table public.bulk_items (
    account_id uuid not null,
    run_id uuid not null,
    position integer not null check (position > 0),  -- in what was sent, from 1
    username text not null check (length(username) between 1 and 30),
    item_run_id uuid,  -- null: not started, or long gone
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

-- What was sent and not accepted, and why.
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

alter table public.bulk_items enable row level security;
alter table public.bulk_items force row level security;
alter table public.bulk_rejections enable row level security;
alter table public.bulk_rejections force row level security;
create policy members_read on public.bulk_items for select to authenticated
    using (account_id = any (array(select private.member_account_ids())));
create policy members_read on public.bulk_rejections for select to authenticated
    using (account_id = any (array(select private.member_account_ids())));
revoke all on public.bulk_items, public.bulk_rejections from public, anon, authenticated, service_role;
grant select on public.bulk_items, public.bulk_rejections to authenticated;
grant select, insert, update on public.bulk_items to service_role;
grant select, insert on public.bulk_rejections to service_role;
