"""Rules for the catalog that every migration must keep: each is a query that finds nothing."""

import uuid

import pytest

from tests.integration.database.rows import (
    NEW_EVENT,
    NEW_MODEL_CALL,
    NEW_PROFILE,
    NEW_SCRAPE,
    new_analysis,
    new_delivery,
    new_subscription,
)

OURS = """n.nspname in (
    'public', 'private', 'ledger', 'caller', 'traffic', 'oslira', 'runs', 'leads', 'billing', 'webhooks',
    'scheduling'
)"""
WITH_ENGINE = f"({OURS} or n.nspname = 'dbos')"
# Supabase's Data API acts as one of these roles; a grant to PUBLIC counts as theirs.
CLIENTS = "pg_roles as r on r.rolname in ('anon', 'authenticated')"

RULES = {
    "row level security is enabled and forced on every table": f"""
        select c.oid::regclass from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
        where {OURS} and c.relkind in ('r', 'p') and not (c.relrowsecurity and c.relforcerowsecurity)
    """,
    "definer functions have an empty search path": f"""
        select p.oid::regprocedure from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace
        where {OURS} and p.prosecdef and not coalesce(p.proconfig @> array['search_path=""'], false)
    """,
    "all functions fix their search path": f"""
        select p.oid::regprocedure from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace
        where {OURS} and not coalesce(p.proconfig @> array['search_path=""'], false)
    """,
    "functions that take claims are no definers": """
        select p.oid::regprocedure from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace
        where n.nspname = 'caller' and p.prosecdef
    """,
    "only their owner may truncate": f"""
        select c.oid::regclass, r.rolname from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
        cross join pg_roles as r
        where {OURS} and c.relkind in ('r', 'p')
            and r.rolname in ('anon', 'authenticated', 'service_role', 'app_user', 'app_admin')
            and has_table_privilege(r.oid, c.oid, 'truncate')
    """,
    "Data API roles use no schema": f"""
        select n.nspname, r.rolname from pg_namespace as n join {CLIENTS}
        where {WITH_ENGINE} and has_schema_privilege(r.oid, n.oid, 'usage, create')
    """,
    "Data API roles have no privilege on a table or a column": f"""
        select c.oid::regclass, r.rolname from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
        join {CLIENTS}
        where {WITH_ENGINE} and c.relkind in ('r', 'p', 'v', 'm', 'f') and (
            has_table_privilege(
                r.oid, c.oid, 'select, insert, update, delete, truncate, references, trigger')
            or has_any_column_privilege(r.oid, c.oid, 'select, insert, update, references')
        )
    """,
    "Data API roles have no privilege on a sequence": f"""
        select c.oid::regclass, r.rolname from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
        join {CLIENTS}
        where {WITH_ENGINE} and c.relkind = 'S'
            and has_sequence_privilege(r.oid, c.oid, 'usage, select, update')
    """,
    "Data API roles execute no function": f"""
        select p.oid::regprocedure, r.rolname from pg_proc as p
        join pg_namespace as n on n.oid = p.pronamespace join {CLIENTS}
        where {WITH_ENGINE} and has_function_privilege(r.oid, p.oid, 'execute')
    """,
    "no default privilege gives Data API roles a part in what is created later": """
        select d.defaclnamespace::regnamespace, d.defaclobjtype, a.grantee::regrole
        from pg_default_acl as d cross join aclexplode(d.defaclacl) as a
        where a.grantee in (0, 'anon'::regrole, 'authenticated'::regrole)
    """,
    "policies name app_user and no other role": """
        select polrelid::regclass, polname from pg_policy where polroles <> array['app_user'::regrole::oid]
    """,
    "app_user is a member of no other role": """
        select roleid::regrole from pg_auth_members where member = 'app_user'::regrole
    """,
    "a foreign key between tenant tables includes the account": f"""
        with tenant_tables as (
            select c.oid from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
            join pg_attribute as a on a.attrelid = c.oid and a.attname = 'account_id'
            where {OURS} and c.relkind in ('r', 'p')
        )
        select k.conname from pg_constraint as k
        where k.contype = 'f' and k.conrelid in (select oid from tenant_tables)
            and k.confrelid in (select oid from tenant_tables)
            and not exists (
                select from pg_attribute as a
                where a.attrelid = k.conrelid and a.attname = 'account_id' and a.attnum = any (k.conkey)
            )
    """,
    "a policy asks for the user once and not per row": """
        select polrelid::regclass, polname from pg_policy
        where pg_get_expr(polqual, polrelid) ~ '(auth\\.uid|private\\.user_id)\\(\\)'
            and pg_get_expr(polqual, polrelid) !~* 'select (auth\\.uid|private\\.user_id)\\(\\)'
    """,
    "no policy lets every row through": """
        select polrelid::regclass, polname from pg_policy
        where pg_get_expr(polqual, polrelid) = 'true' or pg_get_expr(polwithcheck, polrelid) = 'true'
    """,
    "a tenant table is indexed by its account": f"""
        select c.oid::regclass from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
        join pg_attribute as a on a.attrelid = c.oid and a.attname = 'account_id'
        where {OURS} and c.relkind in ('r', 'p') and not exists (
            select from pg_index as i where i.indrelid = c.oid and i.indkey[0] = a.attnum
        )
    """,
    "credits are bigint, which knows no NaN": f"""
        select c.oid::regclass, a.attname from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
        join pg_attribute as a on a.attrelid = c.oid
        where {OURS} and a.attname ~ 'credits|balance|_delta$|held_after' and a.atttypid <> 'bigint'::regtype
    """,
}

# The roles that may execute each function; the owner alone may execute a function that is not listed.
EXECUTORS = {
    "private.member_account_ids": {"app_user", "service_role"},
    "private.user_id": {"app_user"},
    "private.sign_up_if_new": {"service_role"},
    "private.create_account": {"service_role"},
    "public.deduct_credits": {"service_role"},
    "ledger.grant_credits": {"service_role"},
    "ledger.place_hold": {"service_role"},
    "ledger.spend": {"service_role"},
    "ledger.settle_hold": {"service_role"},
    "ledger.release_hold": {"service_role"},
    "ledger.refund_charge": {"service_role"},
    "ledger.expire_lots": {"service_role"},
    "ledger.audit": {"service_role"},
    "ledger.key_spending": {"service_role"},
    "traffic.take": {"service_role"},
    "traffic.begin_attempt": {"service_role"},
    "traffic.acquire_leases": {"service_role"},
    "traffic.register_worker": {"service_role"},
    "traffic.heartbeat": {"service_role"},
    "traffic.deregister_worker": {"service_role"},
    "runs.start": {"service_role"},
    "runs.start_analysis": {"service_role"},
    "runs.begin": {"service_role"},
    "runs.progress": {"service_role"},
    "runs.pause": {"service_role"},
    "runs.maintain_paused": {"service_role"},
    "runs.finish": {"service_role"},
    "runs.request_cancel": {"service_role"},
    "runs.fail_stalled": {"service_role"},
    "runs.retry": {"service_role"},
    "leads.save": {"service_role"},
    "runs.purge_ended": {"service_role"},
    "public.get_renewable_subscriptions": {"service_role"},
    "billing.period_start": {"service_role"},
    "billing.period_index": {"service_role"},
    "billing.grant_period": {"service_role"},
    "billing.apply_subscription": {"service_role"},
    "billing.renew_internal": {"service_role"},
    "billing.complete_purchase": {"service_role"},
    "billing.record_payment": {"service_role"},
    "billing.reverse_payment": {"service_role"},
    "billing.undo_reversal": {"service_role"},
    "billing.record_invoice": {"service_role"},
    "webhooks.add_endpoint": {"service_role"},
    "webhooks.remove_endpoint": {"service_role"},
    "webhooks.enqueue": {"service_role"},
    "webhooks.claim": {"service_role"},
    "webhooks.record_attempt": {"service_role"},
    "webhooks.fail_pending": {"service_role"},
    "scheduling.claim": {"service_role"},
    "scheduling.begin": {"service_role"},
    "scheduling.finish": {"service_role"},
    "scheduling.fail_stalled": {"service_role"},
    "scheduling.purge": {"service_role"},
    "scheduling.count_purgeable": {"service_role"},
    "scheduling.count_stalled_runs": {"service_role"},
    "scheduling.count_expired_lots": {"service_role"},
    "caller.membership": {"app_user"},
    "caller.set_claims": {"app_user"},
    "caller.credit_balance": {"app_user"},
    "caller.credit_balances": {"app_user"},
    "caller.run": {"app_user"},
}


@pytest.mark.parametrize("rule", RULES)
async def test_the_schema_keeps_the_rule(owner, rule):
    assert await owner.fetch(RULES[rule]) == []


async def test_each_function_is_executable_only_by_the_listed_roles(owner):
    rows = await owner.fetch(f"""
        select format('%s.%s', n.nspname, p.proname) as routine, array_agg(r.rolname::text) as roles
        from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace cross join pg_roles as r
        where {OURS} and r.rolname in ('anon', 'authenticated', 'service_role', 'app_user')
            and has_function_privilege(r.oid, p.oid, 'execute')
        group by 1
    """)

    assert {row["routine"]: set(row["roles"]) for row in rows} == EXECUTORS


async def test_deleting_an_account_deletes_all_its_rows(owner, tenant):
    account_id = tenant.account_id
    await owner.execute("select ledger.grant_credits($1, 10, 'g', 'admin_grant')", account_id)
    await owner.execute("select ledger.place_hold($1, 5, 'h', 'analysis')", account_id)
    await owner.execute(NEW_PROFILE, account_id)
    await new_analysis(owner, account_id)
    await owner.execute(NEW_MODEL_CALL, account_id, uuid.uuid4())
    await owner.execute(NEW_SCRAPE, account_id, uuid.uuid4())
    await new_subscription(owner, account_id)
    await owner.execute(NEW_EVENT, account_id)
    await new_delivery(owner, account_id)
    await owner.execute(
        "select runs.start($1, gen_random_uuid(), 'x', '{}', 1, 'analysis', 'no_worker')", account_id
    )

    await owner.execute("delete from accounts where id = $1", account_id)

    tables = await owner.fetch("""
        select attrelid::regclass::text as name from pg_attribute as a
        join pg_class as c on c.oid = a.attrelid and c.relkind = 'r'
        where a.attname = 'account_id' and c.relnamespace = 'public'::regnamespace
    """)
    assert len(tables) == 32
    for table in tables:
        assert not await owner.fetchval(
            f"select exists (select from {table['name']} where account_id = $1)", account_id
        )


@pytest.mark.parametrize(
    "change", ["update credit_entries set reference = 'x'", "delete from credit_entries"]
)
async def test_entries_are_immutable_even_for_their_owner(owner, tenant, change):
    await owner.execute("select ledger.grant_credits($1, 10, 'g', 'admin_grant')", tenant.account_id)

    with pytest.raises(Exception, match="never changed or removed"):
        await owner.execute(f"{change} where account_id = $1", tenant.account_id)
