-- Outgoing webhooks. A message and its deliveries are written in the transaction of the event that they report: a
-- message is sent if and only if that transaction commits.
-- The tables refer to the row of credits instead of the account's row: a transaction that enqueues a message has that
-- row locked already, and so waits for no lock.

create schema webhooks;
grant usage on schema webhooks to service_role;

create table public.webhook_endpoints (
    account_id uuid not null references public.credit_accounts (account_id) on delete cascade,
    id uuid not null,
    url text not null check (length(url) between 1 and 2000),
    host text not null check (length(host) between 1 and 300),  -- with port
    types text[] not null default '{}' check (cardinality(types) <= 50),  -- empty: all
    description text check (length(description) between 1 and 200),
    status text not null default 'active' check (status in ('active', 'disabled')),
    disabled_reason text check (disabled_reason in ('gone', 'failing', 'by_hand')),
    -- The secret is not stored: it is derived from our key, the id and this number.
    secret_version integer not null default 1 check (secret_version > 0),
    rotated_at timestamptz,
    rotation_id uuid,  -- of the last rotating request, which makes it idempotent
    failing_since timestamptz,  -- null: the last delivery succeeded, or there was none
    created_by text not null check (length(created_by) between 1 and 100),
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    primary key (account_id, id),
    check ((status = 'disabled') = (disabled_reason is not null))
);

create index webhook_endpoints_by_age on public.webhook_endpoints (account_id, created_at desc, id desc);

create table public.webhook_messages (
    account_id uuid not null references public.credit_accounts (account_id) on delete cascade,
    id uuid not null default gen_random_uuid(),
    type text not null check (type ~ '^[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*$' and length(type) <= 60),
    data jsonb not null check (jsonb_typeof(data) = 'object'),
    created_at timestamptz not null default clock_timestamp(),
    primary key (account_id, id)
);

create index webhook_messages_by_age on public.webhook_messages (created_at);

-- pending: waits for an attempt, or is claimed. failed: its endpoint was disabled first. dead: all attempts
-- failed.
create table public.webhook_deliveries (
    account_id uuid not null,
    id uuid not null default gen_random_uuid(),
    message_id uuid not null,
    endpoint_id uuid not null,
    type text not null,
    status text not null default 'pending' check (status in ('pending', 'delivered', 'failed', 'dead')),
    attempts integer not null default 0 check (attempts >= 0),
    failures integer not null default 0 check (failures >= 0),  -- since the last start or replay
    due_at timestamptz not null default clock_timestamp(),
    -- The claim's end; due_at has the same value, so that the delivery of a killed worker is due again.
    claimed_until timestamptz,
    last_attempt_at timestamptz,
    last_status smallint check (last_status between 100 and 999),
    last_error text check (last_error ~ '^[a-z][a-z0-9_]{0,59}$'),
    last_duration_ms integer check (last_duration_ms >= 0),
    delivered_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    primary key (account_id, id),
    unique (account_id, message_id, endpoint_id),
    foreign key (account_id, message_id) references public.webhook_messages (account_id, id) on delete cascade,
    foreign key (account_id, endpoint_id)
        references public.webhook_endpoints (account_id, id) on delete cascade
) with (fillfactor = 80);

create index webhook_deliveries_by_age on public.webhook_deliveries (account_id, created_at desc, id desc);
create index webhook_deliveries_by_endpoint
    on public.webhook_deliveries (account_id, endpoint_id, created_at desc, id desc);
create index webhook_deliveries_due on public.webhook_deliveries (due_at) where status = 'pending';
create index webhook_deliveries_waiting on public.webhook_deliveries (account_id, endpoint_id, due_at, id)
    where status = 'pending';
create index webhook_deliveries_under_way on public.webhook_deliveries (claimed_until)
    where claimed_until is not null;

create table public.webhook_attempts (
    account_id uuid not null,
    delivery_id uuid not null,
    number integer not null check (number > 0),
    at timestamptz not null default clock_timestamp(),  -- time of its end
    http_status smallint check (http_status between 100 and 999),  -- null: no response
    error text check (error ~ '^[a-z][a-z0-9_]{0,59}$'),
    duration_ms integer not null check (duration_ms >= 0),
    primary key (account_id, delivery_id, number),
    foreign key (account_id, delivery_id)
        references public.webhook_deliveries (account_id, id) on delete cascade
);

call private.protect_table('public.webhook_endpoints',
    'select, update (url, host, types, description, status, disabled_reason, secret_version, rotated_at, rotation_id,
        failing_since, updated_at)', 'select');

call private.protect_table('public.webhook_messages', 'select, insert', 'select');
call private.protect_table('public.webhook_deliveries', 'select, insert, update', 'select');
call private.protect_table('public.webhook_attempts', 'select', 'select');

-- Endpoints ---------------------------------------------------------------------------------------

create type webhooks.endpoint_result as (outcome text, endpoint public.webhook_endpoints);

-- The row of credits is locked before an endpoint, in the same order as when a message is enqueued.
-- outcome: done | repeated | too_many | unknown_account
create function webhooks.add_endpoint(
    account uuid, id uuid, url text, host text, types text[], description text, created_by text,
    endpoints_max integer
) returns webhooks.endpoint_result language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    endpoint public.webhook_endpoints;
begin
    perform from public.credit_accounts as c where c.account_id = account for no key update;
    if not found then
        return row('unknown_account', null)::webhooks.endpoint_result;
    end if;
    select e.* into endpoint from public.webhook_endpoints as e
    where e.account_id = account and e.id = add_endpoint.id;
    if found then
        return row('repeated', endpoint)::webhooks.endpoint_result;
    elsif endpoints_max <= (
        select count(*) from public.webhook_endpoints as e where e.account_id = account
    ) then
        return row('too_many', null)::webhooks.endpoint_result;
    end if;
    insert into public.webhook_endpoints (account_id, id, url, host, types, description, created_by)
    values (account, id, url, host, types, description, created_by)
    returning * into endpoint;
    update public.credit_accounts as c set has_endpoints = true
    where c.account_id = account and not c.has_endpoints;
    return row('done', endpoint)::webhooks.endpoint_result;
end;
$$;

-- Deletes the endpoint with its deliveries. False if there was none.
create function webhooks.remove_endpoint(account uuid, id uuid) returns boolean
language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
declare
    is_removed boolean;
begin
    perform from public.credit_accounts as c where c.account_id = account for no key update;
    delete from public.webhook_endpoints as e where e.account_id = account and e.id = remove_endpoint.id;
    is_removed := found;
    update public.credit_accounts as c set has_endpoints = false
    where c.account_id = account and c.has_endpoints and not exists (
        select from public.webhook_endpoints as e where e.account_id = account
    );
    return is_removed;
end;
$$;

-- Messages ----------------------------------------------------------------------------------------

-- Enqueues a message for the active endpoints of its type, in the transaction of the event. Null: no endpoint.
-- The endpoints are locked, so that a concurrent removal waits and the insert cannot fail.
create function webhooks.enqueue(account uuid, type text, data jsonb) returns uuid
language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    endpoint_ids uuid[] := array(
        select e.id from public.webhook_endpoints as e
        where e.account_id = account and e.status = 'active'
            and (e.types = '{}' or type = any (e.types))
        for key share
    );
    new_id uuid;
begin
    if endpoint_ids = '{}' then
        return null;
    end if;
    insert into public.webhook_messages (account_id, type, data) values (account, type, data)
    returning id into new_id;
    insert into public.webhook_deliveries (account_id, message_id, endpoint_id, type)
    select account, new_id, endpoint_id, type from unnest(endpoint_ids) as endpoint_id;
    return new_id;
end;
$$;

create function webhooks.enqueue_run_ended() returns trigger
language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
declare
    children record;
begin
    -- The common case: no endpoint.
    if not exists (select from public.webhook_endpoints as e where e.account_id = new.account_id) then
        return null;
    end if;
    select coalesce(sum(r.credits_held), 0) as credits_held,
        coalesce(sum(r.credits_charged), 0) as credits_charged
    into children
    from public.runs as r where r.account_id = new.account_id and r.parent_id = new.id;
    perform webhooks.enqueue(
        new.account_id,
        case when new.kind = 'bulk_analysis' and new.status = 'completed' then 'bulk.completed'
            else 'run.' || new.status end,
        jsonb_build_object(
            'run_id', new.id, 'kind', new.kind, 'status', new.status, 'outcome', new.outcome,
            'error', new.error, 'subject', new.subject,
            'credits_held', new.credits_held + children.credits_held,
            'credits_charged', new.credits_charged + children.credits_charged,
            'created_at', new.created_at, 'started_at', new.started_at, 'ended_at', new.ended_at));
    return null;
end;
$$;

-- Only the parent's end is reported, not those of its children.
create trigger enqueue_run_ended after update of ended_at on public.runs
    for each row when (old.ended_at is null and new.ended_at is not null and new.parent_id is null)
    execute function webhooks.enqueue_run_ended();

create function webhooks.enqueue_low_credits() returns trigger
language plpgsql security definer set search_path = '' as $$
declare
    low_at bigint;
begin
    select coalesce(a.credits_low_at, (p.monthly_credits + 9) / 10) into low_at
    from public.accounts as a join public.plans as p on p.name = a.plan
    where a.id = new.account_id;
    if new.credits_available + new.credits_held < low_at
        and old.credits_available + old.credits_held >= low_at then
        perform webhooks.enqueue(new.account_id, 'credits.low', jsonb_build_object(
            'credits_available', new.credits_available, 'credits_held', new.credits_held,
            'credits_low_at', low_at));
    end if;
    return null;
end;
$$;

-- Held credits are not spent yet. Because they are counted, failing work near the limit does not cross it
-- repeatedly.
create trigger enqueue_low_credits after update of credits_available, credits_held on public.credit_accounts
    for each row when (
        new.has_endpoints
        and new.credits_available + new.credits_held < old.credits_available + old.credits_held
    )
    execute function webhooks.enqueue_low_credits();

-- Deliveries --------------------------------------------------------------------------------------

-- Claims at most deliveries_max due deliveries for the lease. Every account gets its first delivery before any
-- account gets a second one. An account has at most per_account_max claimed deliveries and a host twice as many,
-- so that one account cannot occupy a host that others use too. These limits hold for all processes together, so
-- only one claims at a time, and a concurrent call returns nothing.
create function webhooks.claim(deliveries_max integer, per_account_max integer, lease interval)
returns table (
    account_id uuid, id uuid, message_id uuid, endpoint_id uuid, type text, data text,
    happened_at timestamptz, url text, secret_version integer, rotated_at timestamptz, failures integer,
    failing_since timestamptz, claimed_until timestamptz, claimed_at timestamptz
) language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_column
declare
    now_at constant timestamptz := clock_timestamp();
begin
    -- The common case: nothing is due.
    if not exists (
        select from public.webhook_deliveries as d where d.status = 'pending' and d.due_at <= now_at
    ) or not pg_try_advisory_xact_lock(7305803406) then
        return;
    end if;
    return query
    -- A loose index scan over endpoints, however many deliveries wait for one of them.
    with recursive waiting as (
        (
            select d.account_id, d.endpoint_id from public.webhook_deliveries as d
            where d.status = 'pending' order by d.account_id, d.endpoint_id limit 1
        )
        union all
        select n.account_id, n.endpoint_id from waiting as w cross join lateral (
            select d.account_id, d.endpoint_id from public.webhook_deliveries as d
            where d.status = 'pending' and (d.account_id, d.endpoint_id) > (w.account_id, w.endpoint_id)
            order by d.account_id, d.endpoint_id limit 1
        ) as n
    ), under_way as (
        select d.account_id, e.host from public.webhook_deliveries as d
        join public.webhook_endpoints as e on e.account_id = d.account_id and e.id = d.endpoint_id
        where d.claimed_until > now_at
    ), due as (
        select d.account_id, d.id, d.due_at, e.host,
            (select count(*) from under_way as u where u.account_id = d.account_id)
                + row_number() over (partition by d.account_id order by d.due_at, d.id) as account_position
        from waiting as w
        join public.accounts as a on a.id = w.account_id and a.deleted_at is null
        join public.webhook_endpoints as e
            on e.account_id = w.account_id and e.id = w.endpoint_id and e.status = 'active'
        cross join lateral (
            select * from public.webhook_deliveries as l
            where l.account_id = w.account_id and l.endpoint_id = w.endpoint_id
                and l.status = 'pending' and l.due_at <= now_at
            order by l.due_at, l.id limit per_account_max
        ) as d
    ), ranked as (
        select d.*,
            (select count(*) from under_way as u where u.host = d.host)
                + row_number() over (partition by d.host order by d.account_position, d.due_at) as host_position
        from due as d where d.account_position <= per_account_max
    ), chosen as (
        select p.account_id, p.id from ranked as p where p.host_position <= 2 * per_account_max
        order by p.account_position, p.due_at, p.id limit deliveries_max
    ), locked as (
        select d.account_id, d.id from public.webhook_deliveries as d
        join chosen as c on c.account_id = d.account_id and c.id = d.id
        where d.status = 'pending' and d.due_at <= now_at
        for no key update of d skip locked
    ), claimed as (
        update public.webhook_deliveries as d
        set claimed_until = now_at + lease, due_at = now_at + lease
        from locked as l where d.account_id = l.account_id and d.id = l.id
        returning d.*
    )
    select d.account_id, d.id, d.message_id, d.endpoint_id, d.type, n.data::text, n.created_at, e.url,
        e.secret_version, e.rotated_at, d.failures, e.failing_since, d.claimed_until, now_at
    from claimed as d
    join public.webhook_messages as n on n.account_id = d.account_id and n.id = d.message_id
    join public.webhook_endpoints as e on e.account_id = d.account_id and e.id = d.endpoint_id;
end;
$$;

-- Fails the waiting deliveries of a disabled endpoint.
create function webhooks.fail_pending(account uuid, endpoint uuid) returns void
language sql security definer set search_path = '' as $$
    update public.webhook_deliveries as d set status = 'failed'
    where d.account_id = account and d.endpoint_id = endpoint and d.status = 'pending'
$$;

-- Records an attempt. False if the claim was lost meanwhile; then nothing changes. The endpoint's row is locked
-- before the delivery's, as when an endpoint is removed.
create function webhooks.record_attempt(
    account uuid, delivery uuid, claim timestamptz, new_status text, retry_in interval, http_status integer,
    error text, duration_ms integer, disabled_reason text
) returns boolean language plpgsql security definer set search_path = '' set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    now_at constant timestamptz := clock_timestamp();
    endpoint public.webhook_endpoints;
    settled public.webhook_deliveries;
begin
    select d.* into settled from public.webhook_deliveries as d
    where d.account_id = account and d.id = delivery and d.claimed_until = claim;
    if not found then
        return false;
    end if;
    if new_status = 'delivered' then
        update public.webhook_endpoints as e set failing_since = null
        where e.account_id = account and e.id = settled.endpoint_id and e.failing_since is not null;
    else
        update public.webhook_endpoints as e
        set failing_since = coalesce(e.failing_since, now_at),
            status = case when disabled_reason is null then e.status else 'disabled' end,
            disabled_reason = coalesce(e.disabled_reason, record_attempt.disabled_reason)
        where e.account_id = account and e.id = settled.endpoint_id
        returning e.* into endpoint;
    end if;
    update public.webhook_deliveries as d
    set status = new_status,
        attempts = d.attempts + 1,
        failures = case new_status when 'delivered' then 0 else d.failures + 1 end,
        due_at = now_at + coalesce(retry_in, interval '0'), claimed_until = null, last_attempt_at = now_at,
        last_status = http_status, last_error = error, last_duration_ms = duration_ms,
        delivered_at = case new_status when 'delivered' then now_at else d.delivered_at end
    where d.account_id = account and d.id = delivery and d.claimed_until = claim
    returning d.* into settled;
    if not found then
        return false;
    end if;
    insert into public.webhook_attempts (account_id, delivery_id, number, at, http_status, error, duration_ms)
    values (account, delivery, settled.attempts, now_at, http_status, error, duration_ms);
    if endpoint.status = 'disabled' then
        perform webhooks.fail_pending(account, endpoint.id);
    end if;
    return true;
end;
$$;

grant execute on function
    webhooks.add_endpoint(uuid, uuid, text, text, text[], text, text, integer),
    webhooks.remove_endpoint(uuid, uuid),
    webhooks.enqueue(uuid, text, jsonb),
    webhooks.claim(integer, integer, interval),
    webhooks.record_attempt(uuid, uuid, timestamptz, text, interval, integer, text, integer, text),
    webhooks.fail_pending(uuid, uuid)
to service_role;
