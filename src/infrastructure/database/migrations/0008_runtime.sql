-- State shared by all processes: rate limit windows, idempotency keys, request records, data points, leases and
-- workers. The service role alone.

create schema traffic;
grant usage on schema traffic to service_role;

-- Rate limits -------------------------------------------------------------------------------------

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

-- Idempotency keys --------------------------------------------------------------------------------

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

-- Records of requests and data points -------------------------------------------------------------

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
    request_id text not null,
    code text  -- of the problem; null: none
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

-- kind says what the texts and the numbers are: see infrastructure/database/data_points.py.
create table traffic.data_points (
    at timestamptz not null,
    kind text not null,
    account_id uuid,
    user_id uuid,
    blobs text[] not null,
    doubles double precision[] not null
);

create index data_points_by_time on traffic.data_points using brin (at);
create index data_points_by_kind on traffic.data_points (kind, at);
create index data_points_by_account on traffic.data_points (account_id, at) where account_id is not null;

-- Leases ------------------------------------------------------------------------------------------

create table traffic.leases (
    holder uuid primary key,
    name text not null check (length(name) between 1 and 100),
    expires_at timestamptz not null
);

create index leases_by_name on traffic.leases (name, expires_at);

-- Gives leases to the first of those who wait, for as many as are free, and returns them. The lock is the
-- transaction's, so that a pooler cannot hand it to two; behind it nobody counts what another is about
-- to take.
create function traffic.lease(
    name text, leases_max integer, holders uuid[], lifetime_s double precision
) returns setof uuid language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
    free integer;
begin
    perform pg_advisory_xact_lock(hashtextextended('lease ' || lease.name, 0));
    delete from traffic.leases as l where l.name = lease.name and l.expires_at <= clock_timestamp();
    select leases_max - count(*) into free from traffic.leases as l where l.name = lease.name;
    if free > 0 then
        return query
        insert into traffic.leases (holder, name, expires_at)
        select h.holder, lease.name, clock_timestamp() + make_interval(secs => lifetime_s)
        from unnest(holders) with ordinality as h (holder, place)
        order by h.place
        limit free
        returning holder;
    end if;
end;
$$;

-- Workers -----------------------------------------------------------------------------------------

-- Processes that work, as far as they are heard of. Times are the database's: nobody's clock but one.
create table traffic.workers (
    executor text primary key check (length(executor) between 1 and 100),
    host text not null check (length(host) <= 255),
    queues text[] not null,
    started_at timestamptz not null default clock_timestamp(),
    heartbeat_at timestamptz not null default clock_timestamp(),
    -- Since when its heartbeats have come without a gap. Only who was steady itself may say of another
    -- that it was not: when the database was away for everybody, nobody is dead.
    steady_since timestamptz not null default clock_timestamp(),
    is_draining boolean not null default false,
    gone_at timestamptz  -- left, or given up; it does not come back under this name
);

create function traffic.enlist(executor text, host text, queues text[]) returns void
language sql security definer set search_path = '' as $$
    insert into traffic.workers (executor, host, queues) values (executor, host, queues)
$$;

create function traffic.is_alive(executor text) returns boolean
language sql stable set search_path = '' as $$
    select exists (
        select from traffic.workers as w where w.executor = is_alive.executor and w.gone_at is null)
$$;

-- One heartbeat. is_alive: false when it was given up; then it must stop. cancels: which of its runs
-- should stop. orphans: executors that are gone and have left work with the engine, for this one to hand
-- on; told to one at a time, and again until it is done.
create function traffic.beat(
    executor text, gone_after interval, is_draining boolean,
    out is_alive boolean, out cancels uuid[], out orphans text[]
) language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    now_at timestamptz := clock_timestamp();
    steady_since timestamptz;
begin
    update traffic.workers as w
    set heartbeat_at = now_at, is_draining = beat.is_draining,
        steady_since = case
            when w.heartbeat_at < now_at - gone_after then now_at else w.steady_since end
    where w.executor = beat.executor and w.gone_at is null
    returning w.steady_since into steady_since;
    is_alive := found;
    cancels := '{}';
    orphans := '{}';
    if not is_alive then
        return;
    end if;
    cancels := array(
        select r.id from public.runs as r
        where r.executor = beat.executor and r.status in ('processing', 'paused') and r.should_cancel
    );
    if steady_since > now_at - gone_after or not pg_try_advisory_xact_lock(7305803402) then
        return;
    end if;
    update traffic.workers as w set gone_at = now_at
    where w.gone_at is null and w.heartbeat_at < now_at - gone_after;
    perform runs.fence_off();
    orphans := array(
        select distinct s.executor_id from dbos.workflow_status as s
        where s.status = 'PENDING' and not traffic.is_alive(s.executor_id)
    );
    delete from traffic.workers as w where w.gone_at < now_at - interval '1 hour';
end;
$$;

-- It goes in good order: its runs are others' from this moment.
create function traffic.leave(executor text) returns void
language plpgsql security definer set search_path = '' as $$
begin
    update traffic.workers as w set gone_at = clock_timestamp()
    where w.executor = leave.executor and w.gone_at is null;
    perform runs.fence_off();
end;
$$;

-- Privileges --------------------------------------------------------------------------------------

call private.protect_table('traffic.rate_windows', 'select, insert, update, delete');
call private.protect_table('traffic.idempotency_keys', 'select, insert, update, delete');
call private.protect_table('traffic.requests', 'select, insert, update, delete');
call private.protect_table('traffic.request_counts', 'select, insert, update, delete');
call private.protect_table('traffic.data_points', 'select, insert, update, delete');
call private.protect_table('traffic.leases', 'select, insert, update, delete');
call private.protect_table('traffic.workers', 'select');

grant execute on function
    traffic.take(text[], integer[], integer[], integer[]),
    traffic.begin_attempt(bytea, bytea, uuid, double precision, double precision),
    traffic.lease(text, integer, uuid[], double precision),
    traffic.enlist(text, text, text[]),
    traffic.beat(text, interval, boolean),
    traffic.leave(text)
to service_role;
