create table public.toys (name text primary key);
alter table public.toys enable row level security;
alter table public.toys force row level security;
grant select, insert on public.toys to service_role;
