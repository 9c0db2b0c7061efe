-- Accounts and the principals that act for them: members, invited users, API keys.

-- Accounts and members ----------------------------------------------------------------------------

create table public.accounts (
    id uuid primary key default gen_random_uuid(),
    name text not null check (length(name) between 1 and 200),
    created_at timestamptz not null default now(),
    deleted_at timestamptz,
    plan text not null default 'free' references public.plans (name),
    updated_at timestamptz not null default now(),
    -- Below this number the credits.low webhook is sent; null: a tenth of the plan's monthly credits.
    credits_low_at bigint check (credits_low_at >= 0),
    constraint visitors_stay check (id <> '00000000-0000-4000-8000-000000000000' or deleted_at is null)
);

create index accounts_deleted on public.accounts (deleted_at) where deleted_at is not null;

create table public.memberships (
    account_id uuid not null references public.accounts (id) on delete cascade,
    user_id uuid not null,
    role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
    created_at timestamptz not null default now(),
    -- False while the account is deleted: every statement reads the memberships, and a join would double the cost.
    is_active boolean not null default true,
    primary key (account_id, user_id),
    constraint visitors_have_no_members check (account_id <> '00000000-0000-4000-8000-000000000000')
);

create index memberships_by_user on public.memberships (user_id, account_id) where is_active;
create index memberships_of_owners on public.memberships (user_id) where role = 'owner';

-- One row per user, so that the sign-up bonus is granted once. The row outlives the account: a deleted account
-- does not grant the bonus a second time.
create table public.sign_ups (
    user_id uuid primary key,
    -- Deferred, because this row is the lock and is inserted before the account.
    account_id uuid references public.accounts (id) on delete set null deferrable initially deferred,
    at timestamptz not null default now(),
    email text not null default '' check (length(email) <= 320)
);

create index sign_ups_by_account on public.sign_ups (account_id);

call private.protect_table('public.accounts', 'select, insert, update, delete', 'select', 'id');
call private.protect_table('public.memberships', 'select, insert, update, delete', 'select');
call private.protect_table('public.sign_ups', 'select, insert, update, delete');

create policy own_read on public.sign_ups for select to app_user
    using (user_id = (select private.user_id()));
-- Members see each other's addresses. The policy of memberships applies to the subquery.
create policy members_read on public.sign_ups for select to app_user
    using (user_id in (select m.user_id from public.memberships as m));
grant select on public.sign_ups to app_user;

-- Creates the account, membership and bonus of a new user once, also when requests race. For an existing user it
-- updates the email address.
create function private.sign_up_if_new(user_id uuid, email text, account_name text, bonus_credits bigint)
returns void language plpgsql security definer set search_path = '' as $$
declare
    existing public.sign_ups;
    account uuid;
begin
    select * into existing from public.sign_ups as s where s.user_id = sign_up_if_new.user_id;
    if found then
        if existing.email <> sign_up_if_new.email then
            update public.sign_ups as s set email = sign_up_if_new.email
            where s.user_id = sign_up_if_new.user_id;
        end if;
        return;
    end if;
    insert into public.sign_ups (user_id, email, account_id)
    values (sign_up_if_new.user_id, sign_up_if_new.email, gen_random_uuid())
    on conflict on constraint sign_ups_pkey do nothing
    returning account_id into account;
    if account is null then
        return;
    end if;
    insert into public.accounts (id, name) values (account, account_name);
    insert into public.memberships (account_id, user_id, role) values (account, sign_up_if_new.user_id, 'owner');
    insert into public.credit_accounts (account_id) values (account);
    if bonus_credits > 0 then
        perform ledger.grant_credits(account, bonus_credits, 'signup:' || sign_up_if_new.user_id, 'signup_bonus');
    end if;
end;
$$;

-- Creates another account for a user. outcome: done | repeated | too_many
create function private.create_account(account_id uuid, user_id uuid, name text, accounts_max integer)
returns text language plpgsql security definer set search_path = '' as $$
begin
    -- Concurrent calls of one user wait here, so that the count below is right.
    perform pg_advisory_xact_lock(hashtextextended('accounts of ' || user_id, 0));
    if exists (
        select from public.memberships as m
        where m.account_id = create_account.account_id and m.user_id = create_account.user_id
    ) then
        return 'repeated';
    elsif accounts_max <= (
        select count(*) from public.memberships as m
        where m.user_id = create_account.user_id and m.role = 'owner'
    ) then
        return 'too_many';
    end if;
    insert into public.accounts (id, name) values (create_account.account_id, create_account.name);
    insert into public.memberships (account_id, user_id, role)
    values (create_account.account_id, create_account.user_id, 'owner');
    insert into public.credit_accounts (account_id) values (create_account.account_id);
    return 'done';
end;
$$;

create function private.set_memberships_active() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
    update public.memberships set is_active = new.deleted_at is null where account_id = new.id;
    return null;
end;
$$;

create trigger set_memberships_active after update of deleted_at on public.accounts
    for each row when (old.deleted_at is distinct from new.deleted_at)
    execute function private.set_memberships_active();

-- Invitations and API keys ------------------------------------------------------------------------

create table public.invitations (
    account_id uuid not null references public.accounts (id) on delete cascade,
    id uuid not null,
    email text not null check (length(email) between 3 and 320),
    role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
    token_hash bytea not null unique check (octet_length(token_hash) = 32),
    invited_by uuid not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    sent_at timestamptz,
    closed_at timestamptz,  -- accepted or withdrawn
    primary key (account_id, id)
);

create unique index invitations_open on public.invitations (account_id, email) where closed_at is null;
create index invitations_by_time on public.invitations (account_id, created_at desc, id desc);

create table public.api_keys (
    account_id uuid not null references public.accounts (id) on delete cascade,
    id uuid not null unique,
    -- The first key of a series of rotations; spending is counted for the whole series.
    family_id uuid not null,
    name text not null check (length(name) between 1 and 200),
    mode text not null check (mode in ('live', 'test')),
    secret_hash bytea not null check (octet_length(secret_hash) = 32),
    scopes text[] not null check (cardinality(scopes) between 1 and 100),
    project text check (length(project) between 1 and 100),
    credits_per_month_max bigint check (credits_per_month_max >= 0),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    created_by uuid not null,
    created_at timestamptz not null default now(),
    primary key (account_id, id)
);

create index api_keys_by_time on public.api_keys (account_id, created_at desc, id desc);
create index api_keys_by_family on public.api_keys (account_id, family_id);

-- Only the service role reads hashes.
call private.protect_table('public.invitations', 'select, insert, update, delete',
    'select (account_id, id, email, role, invited_by, created_at, expires_at, sent_at, closed_at)');
call private.protect_table('public.api_keys', 'select, insert, update, delete',
    'select (account_id, id, family_id, name, mode, scopes, project, credits_per_month_max, expires_at, revoked_at,
        last_used_at, created_by, created_at)');

-- Notifications of changed access -----------------------------------------------------------------

-- Notifies processes that cached access may be out of date. The payload is 'user id', 'key id' or 'account id'.
create function private.notify_access_change() returns trigger language plpgsql set search_path = '' as $$
begin
    if tg_table_name = 'memberships' then
        perform pg_notify('oslira_access', 'user ' || coalesce(new.user_id, old.user_id));
    elsif tg_table_name = 'api_keys' then
        perform pg_notify('oslira_access', 'key ' || old.id);
    else
        perform pg_notify('oslira_access', 'account ' || old.id);
    end if;
    return null;
end;
$$;

create trigger notify_access_change after insert or update or delete on public.memberships
    for each row execute function private.notify_access_change();

create trigger notify_access_change after update on public.api_keys
    for each row when (
        (old.revoked_at, old.expires_at, old.scopes) is distinct from
        (new.revoked_at, new.expires_at, new.scopes)
    )
    execute function private.notify_access_change();

create trigger notify_access_removed after delete on public.api_keys
    for each row execute function private.notify_access_change();

create trigger notify_access_change after update of deleted_at on public.accounts
    for each row execute function private.notify_access_change();

-- Reads of callers --------------------------------------------------------------------------------

-- Sets the claims for this transaction, by an assignment, which costs less than a query. Returns the account that
-- the caller chose, or the caller's only one. The policies decide whether the caller may see it.
create function caller.set_claims(claims text, chosen uuid) returns uuid
language plpgsql set search_path = '' as $$
declare
    accounts uuid[];
begin
    claims := set_config('request.jwt.claims', claims, true);
    if chosen is not null then
        return chosen;
    end if;
    accounts := array(select private.member_account_ids());
    return case when cardinality(accounts) = 1 then accounts[1] end;
end;
$$;

-- The caller's account, role (null for an API key) and plan. All are null if the caller has no such account.
create function caller.membership(
    claims text, chosen uuid, out account_id uuid, out role text, out plan text
) language plpgsql set search_path = '' as $$
declare
    account uuid := caller.set_claims(claims, chosen);
begin
    select a.id, m.role, a.plan into account_id, role, plan
    from public.accounts as a
    left join public.memberships as m on m.account_id = a.id and m.user_id = (select private.user_id())
    where a.id = account;
end;
$$;

grant execute on function
    private.sign_up_if_new(uuid, text, text, bigint),
    private.create_account(uuid, uuid, text, integer)
to service_role;

grant execute on function
    caller.set_claims(text, uuid),
    caller.membership(text, uuid)
to app_user;
