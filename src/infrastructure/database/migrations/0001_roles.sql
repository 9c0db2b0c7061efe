-- Database roles and the caller's claims. Supabase already has some of these objects: each one is created only
-- where it is absent.

do $$
begin
    if to_regrole('anon') is null then
        create role anon nologin noinherit;
    end if;
    if to_regrole('authenticated') is null then
        create role authenticated nologin noinherit;
    end if;
    if to_regrole('service_role') is null then
        create role service_role nologin noinherit bypassrls;
    end if;
    -- Row level security applies to app_user; app_admin becomes service_role when it connects.
    if to_regrole('app_user') is null then
        create role app_user login inherit nobypassrls;
    end if;
    if to_regrole('app_admin') is null then
        create role app_admin login noinherit nobypassrls;
    end if;
exception
    when duplicate_object or unique_violation then
        -- Roles belong to the cluster: a migration of another database may have won the race.
        null;
end;
$$;

grant service_role to app_admin;
alter role app_admin set role = 'service_role';

-- Set on the roles, not on the sessions, so that they hold behind a transaction pooler too.
alter role app_user set statement_timeout = '10s';
alter role app_user set lock_timeout = '5s';
alter role app_user set idle_in_transaction_session_timeout = '15s';
-- A client that disconnects or cancels does not leave a long statement running.
alter role app_user set client_connection_check_interval = '1s';
alter role app_admin set statement_timeout = '60s';
alter role app_admin set lock_timeout = '10s';
alter role app_admin set idle_in_transaction_session_timeout = '60s';
alter role app_admin set client_connection_check_interval = '1s';

do $$
begin
    if to_regnamespace('auth') is null then
        create schema auth;
    end if;
    -- As on Supabase, without a search path of their own: otherwise the planner could not inline them.
    if to_regprocedure('auth.jwt()') is null then
        execute $function$
            create function auth.jwt() returns jsonb language sql stable as $body$
                select nullif(current_setting('request.jwt.claims', true), '')::jsonb
            $body$
        $function$;
    end if;
    if to_regprocedure('auth.uid()') is null then
        execute $function$
            create function auth.uid() returns uuid language sql stable as $body$
                select nullif(
                    nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub', ''
                )::uuid
            $body$
        $function$;
    end if;
end;
$$;

-- Supabase's Data API acts as anon or authenticated. A browser with a user's token could call it, and only row
-- level security would apply there, so these roles have no privilege in our schemas. Supabase grants them
-- everything in public by default; objects of the migrations start without that. Each migration grants what
-- app_user and service_role need.
do $$
begin
    if pg_has_role('app_user', 'authenticated', 'member') then
        revoke authenticated from app_user;
    end if;
end;
$$;
revoke all on schema public from public, anon, authenticated;
alter default privileges in schema public
    revoke all on tables from public, anon, authenticated, service_role;
alter default privileges in schema public
    revoke all on sequences from public, anon, authenticated, service_role;
alter default privileges in schema public
    revoke all on functions from public, anon, authenticated, service_role;
-- Every role may execute a new function by default; in our schemas a role may only after a grant.
alter default privileges revoke execute on functions from public;

-- private: helpers that policies and callers' statements call.
-- ledger:  every change of credits; the service role alone.
-- caller:  reads that take the caller's claims as an argument. A role that may execute them can forge
--          claims, so the application's own login role is the only one that may. Never expose these
--          three schemas over REST.
create schema private;
create schema ledger;
create schema caller;
grant usage on schema private to app_user, service_role;
grant usage on schema ledger to service_role;
grant usage on schema caller to app_user;
grant usage on schema public to app_user, service_role;

-- The caller's user id; null for a key. Supabase's auth.uid() is in a schema that app_user may not use, and
-- on Supabase the owner of these tables cannot grant that.
create function private.user_id() returns uuid language plpgsql stable set search_path = '' as $$
begin
    return nullif(nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub', '');
end;
$$;

-- The accounts that the caller may see: of a user those of the memberships, of an API key its own as long as the
-- key is valid. A deleted account has no members. The function is a definer, so that the policy of memberships
-- does not recurse into itself, and plpgsql, which caches its plan.
create function private.member_account_ids() returns setof uuid
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

grant execute on function private.user_id() to app_user;
grant execute on function private.member_account_ids() to app_user, service_role;

-- Forces row level security on a table, for its owner too, and grants the service role and the members of the
-- row's account the listed privileges; all other roles have none. Without member_privileges members see no row.
create procedure private.protect_table(
    target regclass, service_privileges text, member_privileges text default null,
    account_column text default 'account_id'
) language plpgsql set search_path = '' as $$
declare
    own_rows constant text := format('(%I = any (array(select private.member_account_ids())))', account_column);
begin
    execute format('alter table %s enable row level security', target);
    execute format('alter table %s force row level security', target);
    execute format('revoke all on %s from public, anon, authenticated, service_role', target);
    execute format('grant %s on %s to service_role', service_privileges, target);
    if member_privileges is null then
        return;
    end if;
    execute format('grant %s on %s to app_user', member_privileges, target);
    execute format('create policy members_read on %s for select to app_user using %s', target, own_rows);
    if member_privileges ~ '\minsert\M' then
        execute format('create policy members_insert on %s for insert to app_user with check %s', target, own_rows);
    end if;
    if member_privileges ~ '\mupdate\M' then
        execute format(
            'create policy members_update on %1$s for update to app_user using %2$s with check %2$s',
            target, own_rows);
    end if;
end;
$$;

revoke all on oslira.migrations from public, anon, authenticated;
grant usage on schema oslira to service_role;
grant select on oslira.migrations to service_role;
