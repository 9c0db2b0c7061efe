create table public.accounts (
    id uuid primary key default gen_random_uuid(),
    name text not null check (length(name) between 1 and 200),
    created_at timestamptz not null default now(),
    deleted_at timestamptz
);

create table public.memberships (
    account_id uuid not null references public.accounts (id) on delete cascade,
    user_id uuid not null,
    role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
    created_at timestamptz not null default now(),
    primary key (account_id, user_id)
);

create index memberships_by_user on public.memberships (user_id, account_id);

-- One row per user ever seen: what makes the sign-up bonus a thing that happens once.
create table public.sign_ups (
    user_id uuid primary key,
    -- Deferred, because this row is the lock and has to come before the account.
    account_id uuid not null references public.accounts (id) on delete cascade
        deferrable initially deferred,
    at timestamptz not null default now()
);

create index sign_ups_by_account on public.sign_ups (account_id);

-- A definer, so that the policy of memberships can ask it without recursing into itself; plpgsql,
-- because it keeps its plan.
create function private.member_account_ids() returns setof uuid
language plpgsql stable security definer set search_path = '' as $$
begin
    return query select account_id from public.memberships where user_id = (select auth.uid());
end;
$$;

revoke execute on function private.member_account_ids() from public, anon, authenticated;
grant execute on function private.member_account_ids() to app_user, service_role;

alter table public.accounts enable row level security;
alter table public.accounts force row level security;
alter table public.memberships enable row level security;
alter table public.memberships force row level security;
alter table public.sign_ups enable row level security;
alter table public.sign_ups force row level security;

create policy members_read on public.accounts for select to app_user
    using (id = any (array(select private.member_account_ids())));
create policy members_read on public.memberships for select to app_user
    using (account_id = any (array(select private.member_account_ids())));
create policy own_read on public.sign_ups for select to app_user
    using (user_id = (select private.user_id()));

revoke all on public.accounts, public.memberships, public.sign_ups
    from public, anon, authenticated, service_role;
grant select on public.accounts, public.memberships, public.sign_ups to app_user;
grant select, insert, update, delete on public.accounts, public.memberships, public.sign_ups
    to service_role;
