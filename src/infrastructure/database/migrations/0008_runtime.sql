-- State shared by all processes: rate limit windows, idempotency keys, request records, data points, leases and
-- workers. The service role alone.

create schema traffic;
grant usage on schema traffic to service_role;

-- Rate limits -------------------------------------------------------------------------------------

-- A window is a ring of 61 slots of a sixtieth each: one more than the window has, because the oldest slot is
-- partly inside. So no period as long as the window exceeds the limit. Unlogged: a crash loses one window at
-- most. The primary key is the only index, so that updates touch no other; the retention job reads the whole
-- table.
create unlogged table traffic.rate_windows (
    key text primary key check (length(key) <= 200),
    slot bigint not null,      -- the newest, counted from 1970
    taken integer not null,    -- the sum of the ring
    ring integer[] not null,
    expires_at timestamptz not null
) with (fillfactor = 50);

-- Takes from many windows in the order of their keys, so that concurrent calls cannot deadlock. Returns for each
-- the number granted, the number that remains, and the seconds until the oldest slot is free.
create function traffic.take(
    keys text[], wanted integer[], limits integer[], windows_s integer[]
) returns table (granted integer, remaining integer, reset_s double precision)
language plpgsql security definer set search_path = '' as $$
#variable_conflict use_column
declare
    now_s double precision := extract(epoch from clock_timestamp());
    slot_s double precision;
    now_slot bigint;
    ring_index integer;
    w traffic.rate_windows;
    oldest bigint;
begin
    for number in 1 .. cardinality(keys) loop
        slot_s := windows_s[number] / 60.0;
        now_slot := floor(now_s / slot_s);
        -- The common case costs one statement: the slot is current and the limit is not reached.
        ring_index := now_slot % 61 + 1;
        update traffic.rate_windows
        set taken = taken + wanted[number], ring[ring_index] = ring[ring_index] + wanted[number]
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
        if abs(now_slot - w.slot) > 60 then  -- the window is old, or a clock was far ahead
            w.slot := now_slot;
            w.ring := array_fill(0, array[61]);
            w.taken := 0;
        else
            for passed in w.slot + 1 .. now_slot loop
                w.taken := w.taken - w.ring[passed % 61 + 1];
                w.ring[passed % 61 + 1] := 0;
            end loop;
        end if;
        -- If the clock went backwards, the newest slot counts.
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

-- The table has only the hash of a key and the response encrypted under the key, so a reader of the table learns
-- neither.
create table traffic.idempotency_keys (
    id bytea primary key check (octet_length(id) = 32),
    fingerprint bytea not null check (octet_length(fingerprint) = 32),
    attempt uuid not null,
    effect_id uuid not null,  -- of the resource that the request creates; the same for every attempt
    locked_until timestamptz not null,
    response bytea,
    created_at timestamptz not null default now()
);

create index idempotency_keys_by_time on traffic.idempotency_keys (created_at);

-- outcome: acquired (execute the request) | completed (send the stored response) | in_flight | mismatched
-- (another request had this key)
create function traffic.begin_attempt(
    id bytea, fingerprint bytea, attempt uuid, lock_s double precision, retention_s double precision,
    out outcome text, out effect_id uuid, out response bytea
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
        outcome := 'acquired';
        effect_id := begin_attempt.attempt;
        return;
    end if;
    select * into prior from traffic.idempotency_keys as k where k.id = begin_attempt.id for update;
    if not found then
        outcome := 'in_flight';  -- deleted between the two statements; the next call acquires it
    elsif prior.created_at < now_at - retention_s * interval '1 second' and prior.locked_until < now_at then
        outcome := 'acquired';  -- the retention has ended
        effect_id := begin_attempt.attempt;
        update traffic.idempotency_keys as k
        set fingerprint = begin_attempt.fingerprint, attempt = begin_attempt.attempt,
            effect_id = begin_attempt.attempt, locked_until = now_at + lock_s * interval '1 second',
            response = null, created_at = now_at
        where k.id = begin_attempt.id;
    elsif prior.fingerprint <> begin_attempt.fingerprint then
        outcome := 'mismatched';
    elsif prior.response is null and prior.locked_until < now_at then
        outcome := 'acquired';  -- the earlier attempt was interrupted; this one continues it
        effect_id := prior.effect_id;
        update traffic.idempotency_keys as k
        set attempt = begin_attempt.attempt, locked_until = now_at + lock_s * interval '1 second'
        where k.id = begin_attempt.id;
    elsif prior.response is null then
        outcome := 'in_flight';
    else
        outcome := 'completed';
        response := prior.response;
    end if;
end;
$$;

-- Records of requests and data points -------------------------------------------------------------

-- One row per request.
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

-- Rejected requests without an account and requests without a limit, counted per minute. Every column of the key
-- has few values: the route is a template, and the code is the problem's, or '' if there is none.
create table traffic.request_counts (
    minute timestamptz not null,
    method text not null,
    route text not null,
    status smallint not null,
    code text not null,
    requests bigint not null check (requests > 0),
    primary key (minute, method, route, status, code)
);

-- kind determines the meaning of the texts and numbers: see infrastructure/database/costs/metrics.py.
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

-- Leases limit concurrency across all processes. The holder renews its lease; the lease of a killed process expires
-- by the database's clock.
create table traffic.leases (
    holder uuid primary key,
    name text not null check (length(name) between 1 and 100),
    expires_at timestamptz not null
);

create index leases_by_name on traffic.leases (name, expires_at);

-- Grants the free leases to the first holders of the list and returns these. The lock belongs to the
-- transaction, so a pooler cannot share it, and no other transaction counts at the same time.
create function traffic.acquire_leases(
    name text, leases_max integer, holders uuid[], lifetime_s double precision
) returns setof uuid language plpgsql set search_path = '' as $$
#variable_conflict use_column
declare
    free integer;
begin
    perform pg_advisory_xact_lock(hashtextextended('lease ' || acquire_leases.name, 0));
    delete from traffic.leases as l where l.name = acquire_leases.name and l.expires_at <= clock_timestamp();
    select leases_max - count(*) into free from traffic.leases as l where l.name = acquire_leases.name;
    if free > 0 then
        return query
        insert into traffic.leases (holder, name, expires_at)
        select h.holder, acquire_leases.name, clock_timestamp() + make_interval(secs => lifetime_s)
        from unnest(holders) with ordinality as h (holder, position)
        order by h.position
        limit free
        returning holder;
    end if;
end;
$$;

-- Workers -----------------------------------------------------------------------------------------

-- Registered worker processes. All times are the database's.
create table traffic.workers (
    executor text primary key check (length(executor) between 1 and 100),
    host text not null check (length(host) <= 255),
    queues text[] not null,
    started_at timestamptz not null default clock_timestamp(),
    heartbeat_at timestamptz not null default clock_timestamp(),
    -- The start of the uninterrupted heartbeats. Only a worker without an interruption of its own may declare
    -- another one lost: after a database outage all heartbeats are late, and no worker is lost.
    steady_since timestamptz not null default clock_timestamp(),
    is_draining boolean not null default false,
    stopped_at timestamptz  -- deregistered or declared lost; the id is not used again
);

create function traffic.register_worker(executor text, host text, queues text[]) returns void
language sql security definer set search_path = '' as $$
    insert into traffic.workers (executor, host, queues) values (executor, host, queues)
$$;

create function traffic.is_worker_alive(executor text) returns boolean
language sql stable set search_path = '' as $$
    select exists (
        select from traffic.workers as w where w.executor = is_worker_alive.executor and w.stopped_at is null)
$$;

-- Records a heartbeat. is_alive: false if the worker was declared lost; then it must stop. cancels: the worker's
-- runs that should stop. orphans: executors that are lost and have unfinished work in the engine; one worker at
-- a time receives them, until the work is reassigned.
create function traffic.heartbeat(
    executor text, lost_after interval, is_draining boolean,
    out is_alive boolean, out cancels uuid[], out orphans text[]
) language plpgsql security definer set search_path = '' as $$
#variable_conflict use_variable
declare
    now_at timestamptz := clock_timestamp();
    steady_since timestamptz;
begin
    update traffic.workers as w
    set heartbeat_at = now_at, is_draining = heartbeat.is_draining,
        steady_since = case
            when w.heartbeat_at < now_at - lost_after then now_at else w.steady_since end
    where w.executor = heartbeat.executor and w.stopped_at is null
    returning w.steady_since into steady_since;
    is_alive := found;
    cancels := '{}';
    orphans := '{}';
    if not is_alive then
        return;
    end if;
    cancels := array(
        select r.id from public.runs as r
        where r.executor = heartbeat.executor and r.status in ('processing', 'paused') and r.should_cancel
    );
    if steady_since > now_at - lost_after or not pg_try_advisory_xact_lock(7305803402) then
        return;
    end if;
    update traffic.workers as w set stopped_at = now_at
    where w.stopped_at is null and w.heartbeat_at < now_at - lost_after;
    perform runs.fence_orphaned();
    orphans := array(
        select distinct s.executor_id from dbos.workflow_status as s
        where s.status = 'PENDING' and not traffic.is_worker_alive(s.executor_id)
    );
    delete from traffic.workers as w where w.stopped_at < now_at - interval '1 hour';
end;
$$;

-- Ends the worker in an orderly way: other workers may continue its runs at once.
create function traffic.deregister_worker(executor text) returns void
language plpgsql security definer set search_path = '' as $$
begin
    update traffic.workers as w set stopped_at = clock_timestamp()
    where w.executor = deregister_worker.executor and w.stopped_at is null;
    perform runs.fence_orphaned();
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
    traffic.acquire_leases(text, integer, uuid[], double precision),
    traffic.register_worker(text, text, text[]),
    traffic.heartbeat(text, interval, boolean),
    traffic.deregister_worker(text)
to service_role;
