-- Who may act for an account: members, invitations, API keys. And what guards the door: rate windows,
-- idempotency keys, and one data point per request.

-- Users ever seen ---------------------------------------------------------------------------------

alter table public.sign_ups add column email text not null default '' check (length(email) <= 320);

-- The row outlives the account, so that a deleted account does not bring the bonus a second time.
alter table public.sign_ups alter column account_id drop not null;
alter table public.sign_ups drop constraint sign_ups_account_id_fkey;
alter table public.sign_ups add foreign key (account_id) references public.accounts (id)
    on delete set null deferrable initially deferred;

-- Members see each other's addresses. memberships has a policy of its own, which is asked here.
create policy members_read on public.sign_ups for select to app_user
    using (user_id in (select m.user_id from public.memberships as m));

drop function private.first_sight(uuid, text, bigint);

-- A user's first sight: account, membership and bonus, once, however many requests race.
create function private.first_sight(user_id uuid, email text, account_name text, bonus_credits bigint)
returns void language plpgsql security definer set search_path = '' as $$
declare
    known public.sign_ups;
    home uuid;
begin
    select * into known from public.sign_ups as s where s.user_id = first_sight.user_id;
    if found then
        if known.email <> first_sight.email then
            update public.sign_ups as s set email = first_sight.email
            where s.user_id = first_sight.user_id;
        end if;
        return;
    end if;
    insert into public.sign_ups (user_id, email, account_id)
    values (first_sight.user_id, first_sight.email, gen_random_uuid())
    on conflict on constraint sign_ups_pkey do nothing
    returning account_id into home;
    if home is null then
        return;
    end if;
    insert into public.accounts (id, name) values (home, account_name);
    insert into public.memberships (account_id, user_id, role) values (home, first_sight.user_id, 'owner');
    insert into public.credit_accounts (account_id) values (home);
    if bonus_credits > 0 then
        perform ledger.grant_credits(home, bonus_credits, 'signup:' || first_sight.user_id, 'signup_bonus');
    end if;
end;
$$;

-- Accounts ----------------------------------------------------------------------------------------

alter table public.accounts add column updated_at timestamptz not null default now();
create index accounts_deleted on public.accounts (deleted_at) where deleted_at is not null;

-- False while the account is deleted: whose member somebody is, is asked by every statement, and one look
-- costs half of two.
alter table public.memberships add column is_active boolean not null default true;
drop index public.memberships_by_user;
create index memberships_by_user on public.memberships (user_id, account_id) where is_active;
create index memberships_of_owners on public.memberships (user_id) where role = 'owner';

create function private.follow_account() returns trigger
language plpgsql security definer set search_path = '' as $$
begin
    update public.memberships set is_active = new.deleted_at is null where account_id = new.id;
    return null;
end;
$$;

create trigger follow_account after update of deleted_at on public.accounts
    for each row when (old.deleted_at is distinct from new.deleted_at)
    execute function private.follow_account();

-- Another account for a user. outcome: done | repeated | too_many
create function private.create_account(account_id uuid, user_id uuid, name text, accounts_max integer)
returns text language plpgsql security definer set search_path = '' as $$
begin
    -- Rivals of the same user wait here, so that none of them miscounts.
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

-- Invitations -------------------------------------------------------------------------------------

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

-- API keys ----------------------------------------------------------------------------------------

create table public.api_keys (
    account_id uuid not null references public.accounts (id) on delete cascade,
    id uuid not null unique,
    -- The first key of a line of rotations: what a key has spent is counted for the whole line.
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

-- Tenancy: an API key's claims open its own account, as long as it is valid; a deleted account is
-- nobody's. Both hold at once, whatever a process remembers.
create or replace function private.member_account_ids() returns setof uuid
language plpgsql stable security definer set search_path = '' as $$
declare
    claims jsonb := auth.jwt();
begin
    if claims ? 'api_key_id' then
        return query
        select k.account_id from public.api_keys as k
        join public.accounts as a on a.id = k.account_id and a.deleted_at is null
        where k.id = (claims ->> 'api_key_id')::uuid and k.revoked_at is null
            and (k.expires_at is null or k.expires_at > statement_timestamp());
    else
        return query
        select m.account_id from public.memberships as m
        where m.user_id = nullif(claims ->> 'sub', '')::uuid and m.is_active;
    end if;
end;
$$;

alter table public.invitations enable row level security;
alter table public.invitations force row level security;
alter table public.api_keys enable row level security;
alter table public.api_keys force row level security;
create policy members_read on public.invitations for select to app_user
    using (account_id = any (array(select private.member_account_ids())));
create policy members_read on public.api_keys for select to app_user
    using (account_id = any (array(select private.member_account_ids())));
revoke all on public.invitations, public.api_keys from public, anon, authenticated, service_role;
-- Hashes are for the service alone.
grant select (account_id, id, email, role, invited_by, created_at, expires_at, sent_at, closed_at)
    on public.invitations to app_user;
grant select (
    account_id, id, family_id, name, mode, scopes, project, credits_per_month_max, expires_at, revoked_at,
    last_used_at, created_by, created_at
) on public.api_keys to app_user;
grant select, insert, update, delete on public.invitations, public.api_keys to service_role;

-- Where a caller stands in the account meant: role is null for a key. Empty when there is none.
create function caller.standing(
    claims text, chosen uuid, out account_id uuid, out role text, out plan text
) language plpgsql set search_path = '' as $$
declare
    account uuid := caller.enter(claims, chosen);
begin
    select a.id, m.role, a.plan into account_id, role, plan
    from public.accounts as a
    left join public.memberships as m on m.account_id = a.id and m.user_id = (select private.user_id())
    where a.id = account;
end;
$$;

-- What a key may spend ----------------------------------------------------------------------------

alter table public.credit_holds add column api_key_id uuid;
alter table public.credit_holds add foreign key (account_id, api_key_id)
    references public.api_keys (account_id, id) on delete set null (api_key_id);
create index credit_holds_by_key on public.credit_holds (account_id, api_key_id, placed_at)
    where api_key_id is not null;

-- Spent or set aside since the month began (UTC), by the key and those it replaced.
create function ledger.key_spending(account uuid, api_key uuid) returns bigint
language sql stable security definer set search_path = '' as $$
    select coalesce(sum(
        case h.status when 'held' then h.credits_placed else h.credits_spent - h.credits_refunded end
    ), 0)::bigint
    from public.api_keys as mine
    join public.api_keys as k on k.account_id = mine.account_id and k.family_id = mine.family_id
    join public.credit_holds as h on h.account_id = k.account_id and h.api_key_id = k.id
    where mine.account_id = account and mine.id = api_key
        and h.placed_at >= date_trunc('month', statement_timestamp(), 'UTC')
$$;

drop function ledger.place_hold(uuid, bigint, text, text, text);

-- Whether the key is a test key, which never spends.
create function ledger.is_test_key(account uuid, api_key uuid) returns boolean
language sql stable set search_path = '' as $$
    select exists (
        select from public.api_keys as k
        where k.account_id = account and k.id = api_key and k.mode = 'test'
    )
$$;

-- With an API key, its monthly cap is looked at under the account's lock, so that rivals cannot pass it
-- together. A repetition is not counted twice. A test key places no hold.
create function ledger.place_hold(
    account uuid, credits bigint, reference text, transaction_type text, description text default null,
    api_key uuid default null
) returns ledger.outcome language plpgsql security definer set search_path = '' as $$
declare
    locked public.credit_accounts;
    cap bigint;
    placed ledger.outcome;
begin
    if api_key is not null then
        locked := ledger.lock_account(account);
        select k.credits_per_month_max into cap from public.api_keys as k
        where k.account_id = account and k.id = api_key;
        if not found then
            return ledger.refusal('unknown_key', locked);
        elsif ledger.is_test_key(account, api_key) then
            return ledger.refusal('test_key', locked);
        elsif ledger.key_spending(account, api_key) + credits > cap and not exists (
            select from public.credit_holds as h
            where h.account_id = account and h.reference = place_hold.reference
        ) then
            return ledger.refusal('key_capped', locked, cap);
        end if;
    end if;
    placed := ledger.charge('hold', account, credits, reference, transaction_type, description);
    if api_key is not null and placed.outcome = 'done' then
        update public.credit_holds as h set api_key_id = api_key
        where h.account_id = account and h.reference = place_hold.reference;
    end if;
    return placed;
end;
$$;

-- The door ----------------------------------------------------------------------------------------

-- traffic: what every request passes or leaves behind. The service alone.
create schema traffic;
grant usage on schema traffic to service_role;

-- A window is a ring of 61 slots of a sixtieth each: one more than the window has, because the oldest
-- slot is partly inside. So no span as long as the window ever has more than the limit. Not logged: what
-- a crash forgets is worth a minute. No index but the key's, so that an update touches none: what has
-- expired is swept out rarely, by reading through.
create unlogged table traffic.rate_windows (
    key text primary key check (length(key) <= 200),
    slot bigint not null,      -- the newest, counted from 1970
    taken integer not null,    -- the sum of the ring
    ring integer[] not null,
    expires_at timestamptz not null
) with (fillfactor = 50);

-- Takes from many windows in the order of their keys, so that rivals cannot deadlock. For each: how many
-- of those wanted it grants, how many are left, and in how many seconds the oldest comes free.
create function traffic.take(
    keys text[], wanted integer[], limits integer[], windows_s integer[]
) returns table (granted integer, remaining integer, reset_s double precision)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
    now_s double precision := extract(epoch from clock_timestamp());
    slot_s double precision;
    now_slot bigint;
    place integer;
    w traffic.rate_windows;
    oldest bigint;
begin
    for number in 1 .. cardinality(keys) loop
        slot_s := windows_s[number] / 60.0;
        now_slot := floor(now_s / slot_s);
        -- Who has been here in this slot already, and stays within the limit, costs one statement.
        place := now_slot % 61 + 1;
        update traffic.rate_windows
        set taken = taken + wanted[number], ring[place] = ring[place] + wanted[number]
        where key = keys[number] and slot = now_slot and taken + wanted[number] < limits[number]
        returning limits[number] - taken into remaining;
        if found then
            granted := wanted[number];
            reset_s := 0;
            return next;
            continue;
        end if;
        select * into w from traffic.rate_windows where key = keys[number] for update;
        if not found then
            insert into traffic.rate_windows (key, slot, taken, ring, expires_at)
            values (keys[number], now_slot, 0, array_fill(0, array[61]), 'epoch')
            on conflict (key) do nothing;
            select * into w from traffic.rate_windows where key = keys[number] for update;
        end if;
        if abs(now_slot - w.slot) > 60 then  -- long ago, or by a clock that was far ahead
            w.slot := now_slot;
            w.ring := array_fill(0, array[61]);
            w.taken := 0;
        else
            for passed in w.slot + 1 .. now_slot loop
                w.taken := w.taken - w.ring[passed % 61 + 1];
                w.ring[passed % 61 + 1] := 0;
            end loop;
        end if;
        -- A clock that went backwards counts on in the newest slot.
        now_slot := greatest(now_slot, w.slot);
        granted := greatest(least(wanted[number], limits[number] - w.taken), 0);
        remaining := greatest(limits[number] - w.taken - granted, 0);
        if granted > 0 then
            w.ring[now_slot % 61 + 1] := w.ring[now_slot % 61 + 1] + granted;
            w.taken := w.taken + granted;
            update traffic.rate_windows
            set slot = now_slot, taken = w.taken, ring = w.ring,
                expires_at = to_timestamp((now_slot + 62) * slot_s)
            where key = keys[number];
        end if;
        reset_s := 0;
        if remaining = 0 then
            oldest := now_slot - 60;
            while oldest < now_slot and w.ring[oldest % 61 + 1] = 0 loop
                oldest := oldest + 1;
            end loop;
            reset_s := greatest((oldest + 61) * slot_s - now_s, 0);
        end if;
        return next;
    end loop;
end;
$$;

-- Only the hash of a key is kept, and the answer encrypted under the key itself: what is stored here
-- tells a reader nothing.
create table traffic.idempotency_keys (
    id bytea primary key check (octet_length(id) = 32),
    fingerprint bytea not null check (octet_length(fingerprint) = 32),
    attempt uuid not null,
    effect_id uuid not null,  -- what the request creates; the same for every attempt
    locked_until timestamptz not null,
    answer bytea,
    created_at timestamptz not null default now()
);

create index idempotency_keys_by_time on traffic.idempotency_keys (created_at);

-- outcome: mine (go on) | answered | in_flight | other_content
create function traffic.begin_attempt(
    id bytea, fingerprint bytea, attempt uuid, lock_s double precision, retention_s double precision,
    out outcome text, out effect_id uuid, out answer bytea
) language plpgsql security definer set search_path = '' as $$
declare
    now_at timestamptz := clock_timestamp();
    prior traffic.idempotency_keys;
begin
    insert into traffic.idempotency_keys as k (id, fingerprint, attempt, effect_id, locked_until)
    values (begin_attempt.id, begin_attempt.fingerprint, begin_attempt.attempt, begin_attempt.attempt,
        now_at + lock_s * interval '1 second')
    on conflict on constraint idempotency_keys_pkey do nothing;
    if found then
        outcome := 'mine';
        effect_id := begin_attempt.attempt;
        return;
    end if;
    select * into prior from traffic.idempotency_keys as k where k.id = begin_attempt.id for update;
    if not found then
        outcome := 'in_flight';  -- it was given up this very moment; the next look will take it
    elsif prior.created_at < now_at - retention_s * interval '1 second' and prior.locked_until < now_at then
        outcome := 'mine';  -- forgotten: a new beginning
        effect_id := begin_attempt.attempt;
        update traffic.idempotency_keys as k
        set fingerprint = begin_attempt.fingerprint, attempt = begin_attempt.attempt,
            effect_id = begin_attempt.attempt, locked_until = now_at + lock_s * interval '1 second',
            answer = null, created_at = now_at
        where k.id = begin_attempt.id;
    elsif prior.fingerprint <> begin_attempt.fingerprint then
        outcome := 'other_content';
    elsif prior.answer is null and prior.locked_until < now_at then
        outcome := 'mine';  -- its attempt died: this one carries on
        effect_id := prior.effect_id;
        update traffic.idempotency_keys as k
        set attempt = begin_attempt.attempt, locked_until = now_at + lock_s * interval '1 second'
        where k.id = begin_attempt.id;
    elsif prior.answer is null then
        outcome := 'in_flight';
    else
        outcome := 'answered';
        answer := prior.answer;
    end if;
end;
$$;

-- One data point per request.
create table traffic.requests (
    at timestamptz not null,
    method text not null,
    route text not null,
    status smallint not null,
    duration_ms real not null,
    account_id uuid,
    principal_kind text,
    principal_id uuid,
    request_id text not null
);

create index requests_by_time on traffic.requests using brin (at);
create index requests_by_account on traffic.requests (account_id, at) where account_id is not null;

-- Requests without an account that were refused, or that nothing limits: counted by minute. Every column of
-- the key has few values: the route is a template, the code is the problem's, '' where there is none.
create table traffic.request_counts (
    minute timestamptz not null,
    method text not null,
    route text not null,
    status smallint not null,
    code text not null,
    requests bigint not null check (requests > 0),
    primary key (minute, method, route, status, code)
);

alter table traffic.rate_windows enable row level security;
alter table traffic.rate_windows force row level security;
alter table traffic.idempotency_keys enable row level security;
alter table traffic.idempotency_keys force row level security;
alter table traffic.requests enable row level security;
alter table traffic.requests force row level security;
alter table traffic.request_counts enable row level security;
alter table traffic.request_counts force row level security;
revoke all on traffic.rate_windows, traffic.idempotency_keys, traffic.requests, traffic.request_counts
    from public, anon, authenticated, service_role;
grant select, insert, update, delete
    on traffic.rate_windows, traffic.idempotency_keys, traffic.requests, traffic.request_counts
    to service_role;

-- Who may execute what ----------------------------------------------------------------------------

do $$
declare
    routine regprocedure;
begin
    for routine in
        select p.oid::regprocedure from pg_proc as p
        where p.pronamespace = 'traffic'::regnamespace
            or p.oid in (
                'private.first_sight(uuid, text, text, bigint)'::regprocedure::oid,
                'private.follow_account()'::regprocedure::oid,
                'private.create_account(uuid, uuid, text, integer)'::regprocedure::oid,
                'caller.standing(text, uuid)'::regprocedure::oid,
                'ledger.key_spending(uuid, uuid)'::regprocedure::oid,
                'ledger.is_test_key(uuid, uuid)'::regprocedure::oid,
                'ledger.place_hold(uuid, bigint, text, text, text, uuid)'::regprocedure::oid
            )
    loop
        execute format(
            'revoke all on function %s from public, anon, authenticated, service_role', routine);
    end loop;
end;
$$;

grant execute on function
    private.first_sight(uuid, text, text, bigint),
    private.create_account(uuid, uuid, text, integer),
    ledger.key_spending(uuid, uuid),
    ledger.place_hold(uuid, bigint, text, text, text, uuid),
    traffic.take(text[], integer[], integer[], integer[]),
    traffic.begin_attempt(bytea, bytea, uuid, double precision, double precision)
to service_role;

grant execute on function caller.standing(text, uuid) to app_user;
