create table public.toys (name text primary key, built_at timestamptz not null default now());
call private.protect_table('public.toys', 'select, insert');

insert into scheduling.purge_conditions (table_name, condition)
values ('public.toys', $where$ x.built_at < now() - $1 $where$);

insert into ledger.transaction_types (name, sign) values ('toy', -1);
