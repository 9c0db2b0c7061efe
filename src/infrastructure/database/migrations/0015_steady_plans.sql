-- A queue is empty now and full a minute later. A session keeps the plan that it made for the empty table,
-- which is to read all of it, and would read all of the full one with every call until the statistics come.
-- What runs and credits are looked up by has an index each.
do $$
declare
    routine regprocedure;
begin
    for routine in
        select p.oid::regprocedure from pg_proc as p
        join pg_language as l on l.oid = p.prolang and l.lanname = 'plpgsql'
        where p.prosecdef and p.prorettype <> 'trigger'::regtype
            and (p.pronamespace = 'runs'::regnamespace
                or (p.pronamespace = 'ledger'::regnamespace and p.proname <> 'audit'))
    loop
        execute format('alter function %s set enable_seqscan = off', routine);
    end loop;
end;
$$;
