-- So many at once and no more, across all processes. Who holds a lease renews it; what a killed process
-- held comes free when it expires, by the database's clock alone.

create table traffic.leases (
    holder uuid primary key,
    name text not null check (length(name) between 1 and 100),
    expires_at timestamptz not null
);

create index leases_by_name on traffic.leases (name, expires_at);

alter table traffic.leases enable row level security;
alter table traffic.leases force row level security;
revoke all on traffic.leases from public, anon, authenticated, service_role;
grant select, insert, update, delete on traffic.leases to service_role;

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

revoke all on function traffic.lease(text, integer, uuid[], double precision)
from public, anon, authenticated, service_role;
grant execute on function traffic.lease(text, integer, uuid[], double precision) to service_role;
