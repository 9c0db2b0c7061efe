"""Privileges of a Supabase project before the migrations run."""

API_ROLES = """
do $$ begin
    if to_regrole('anon') is null then
        create role anon nologin noinherit;
        create role authenticated nologin noinherit;
        create role service_role nologin noinherit bypassrls;
    end if;
exception when duplicate_object or unique_violation then null;  -- roles belong to the whole cluster
end $$;
"""

# Supabase sets these for the role that owns our objects.
DEFAULT_PRIVILEGES = """
grant usage on schema public to anon, authenticated, service_role;
alter default privileges in schema public grant all on tables to anon, authenticated, service_role;
alter default privileges in schema public grant all on functions to anon, authenticated, service_role;
alter default privileges in schema public grant all on sequences to anon, authenticated, service_role;
"""

# Supabase's own schema: another role owns it, and our owner has no grant option on it.
AUTH_SCHEMA = """
create schema auth;
create function auth.jwt() returns jsonb language sql stable as $$
    select nullif(current_setting('request.jwt.claims', true), '')::jsonb
$$;
create function auth.uid() returns uuid language sql stable as $$
    select (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid
$$;
grant usage on schema auth to anon, authenticated, service_role;
"""
