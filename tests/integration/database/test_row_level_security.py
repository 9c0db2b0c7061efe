"""Isolation of tenants: every table of the catalog, every command, every kind of stranger."""

import json
import uuid

import asyncpg
import pytest

from tests.conftest import make_tenant
from tests.integration.database.rows import (
    NEW_EVENT,
    NEW_MODEL_CALL,
    NEW_PROFILE,
    NEW_SCRAPE,
    new_analysis,
    new_delivery,
    new_subscription,
)
from tests.support import claims_of

# Whether members may read the table. A new table fails the first test until it is listed here.
TABLES = {
    "public.accounts": True,
    "public.memberships": True,
    "public.sign_ups": True,
    "public.credit_accounts": True,
    "public.credit_lots": True,
    "public.credit_holds": True,
    "public.credit_hold_lots": True,
    "public.credit_debts": True,
    "public.credit_entries": True,
    "public.invitations": True,
    "public.api_keys": True,
    "public.business_profiles": True,
    "public.completion_cache": False,
    "public.runs": True,
    "public.bulk_items": True,
    "public.bulk_rejections": True,
    "public.analysis_costs": False,
    "public.anonymous_analyses": False,
    "public.anonymous_tokens": False,
    "public.leads": True,
    "public.analyses": True,
    "public.billing_customers": True,
    "public.subscriptions": True,
    "public.subscription_periods": True,
    "public.checkouts": True,
    "public.invoices": True,
    "public.payments": True,
    "public.payment_reversals": True,
    "public.webhook_endpoints": True,
    "public.webhook_messages": True,
    "public.webhook_deliveries": True,
    "public.webhook_attempts": True,
    "public.credit_packs": False,
    "public.billing_prices": False,
    "public.webhook_events": False,
    "public.cron_runs": False,
    "public.audit_log": False,
    "public.plans": False,
    "public.rate_limits": False,
    "public.token_prices": False,
    "public.unit_prices": False,
    "public.ai_usage_logs": False,
    "public.scrape_logs": False,
    "ledger.transaction_types": False,
    "traffic.rate_windows": False,
    "traffic.idempotency_keys": False,
    "traffic.requests": False,
    "traffic.request_counts": False,
    "traffic.data_points": False,
    "traffic.leases": False,
    "traffic.workers": False,
    "scheduling.settings": False,
    "scheduling.purge_conditions": False,
    "oslira.migrations": False,
}
# The only tables that members may write in their own accounts: the commands, and a column to test with.
WRITABLE = {
    "public.business_profiles": (("insert", "update"), "name"),
    "public.leads": (("update",), "deleted_at"),
    "public.analyses": (("update",), "deleted_at"),
}
STRANGERS = ("other tenant", "anonymous", "no claims", "empty claims")
COMMANDS = ("select", "insert", "upsert", "update", "delete", "truncate")
FORBIDDEN = [
    (table, command)
    for table in TABLES
    for command in ("insert", "update", "delete", "truncate")
    if table not in WRITABLE or command not in WRITABLE[table][0]
]

# Without the engine's schema, which callers may not use at all; tests/system/engine checks that.
CATALOG = """
select format('%s.%s', n.nspname, c.relname) as name
from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f')
    and n.nspname not in ('pg_catalog', 'information_schema', 'auth', 'dbos') and n.nspname !~ '^pg_'
"""
READABLE = """
select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
where attrelid = $1::text::regclass and attnum > 0 and not attisdropped
    and has_column_privilege('app_user', attrelid, attnum, 'select')
"""
COLUMNS = """
select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
where attrelid = $1::text::regclass and attnum > 0 and not attisdropped and attgenerated = ''
"""

INVITATION = """
insert into invitations (account_id, id, email, role, token_hash, invited_by, expires_at)
values ($1, gen_random_uuid(), 'a@example.com', 'member', sha256(random()::text::bytea),
    gen_random_uuid(), now())
"""
API_KEY = """
insert into api_keys (account_id, id, family_id, name, mode, secret_hash, scopes, created_by)
values ($1, gen_random_uuid(), gen_random_uuid(), 'k', 'live', sha256(random()::text::bytea),
    array['credits:read'], gen_random_uuid())
"""
IDEMPOTENCY_KEY = """
select traffic.begin_attempt(sha256(random()::text::bytea), sha256('f'), gen_random_uuid(), 30, 60)
"""
DATA_POINT = (
    "insert into traffic.data_points values (now(), 'analysis', $1, null, '{r,u,light,completed}', '{1}')"
)
PRICES = """
with one as (insert into token_prices values ('victim', 'm', now(), 0, 1, 1, 1, 1, ''))
insert into unit_prices values ('victim', 'run', now(), 1, '')
"""
LEASE = "insert into traffic.leases values (gen_random_uuid(), 'rls', 'infinity')"
RUN = """
select runs.start($1, gen_random_uuid(), 'x', '{}', 1, 'analysis', 'no_worker')
"""
BULK_ROWS = """
with items as (insert into bulk_items select account_id, id, 1, 'ada' from runs where account_id = $1)
insert into bulk_rejections select account_id, id, 2, '!', 'username_invalid', 'no' from runs
where account_id = $1
"""
VISITOR = """
with analysis as (
    insert into anonymous_analyses (run_id, expires_at) values ($1, 'infinity') returning run_id
)
insert into anonymous_tokens select sha256('t'), run_id, 'infinity' from analysis
"""
REQUEST = "insert into traffic.requests values (now(), 'GET', '/', 200, 1, $1, 'user', null, 'r')"
AI_ANSWER = """
insert into completion_cache (
    account_id, completion_key, completion, is_compressed, provider, model, is_simulated, expires_at
)
values ($1, sha256('q'), '{}', false, 'openai', 'gpt-5', true, now() + interval '1 day')
"""


CRON_RUN = """
select scheduling.claim('rls', now(), gen_random_uuid(), 'schedule', false, null)
"""
ADMIN_ACT = """
insert into audit_log (id, operator_id, operation, method, path, account_id, request_id)
values (gen_random_uuid(), gen_random_uuid(), 'grantCredits', 'POST', '/', $1, 'r')
"""


@pytest.fixture(scope="module")
async def victim(owner):
    """A tenant with a row in every table."""
    tenant = await make_tenant(owner)
    await owner.execute("select ledger.grant_credits($1, 10, 'g', 'admin_grant')", tenant.account_id)
    await owner.execute("select ledger.place_hold($1, 5, 'h', 'analysis')", tenant.account_id)
    await owner.execute(INVITATION, tenant.account_id)
    await owner.execute(API_KEY, tenant.account_id)
    await owner.execute("select * from traffic.take(array['a'], array[1], array[5], array[60])")
    await owner.execute(IDEMPOTENCY_KEY)
    await owner.execute(REQUEST, tenant.account_id)
    await owner.execute("insert into traffic.request_counts values (now(), 'GET', '', 404, 'x', 1)")
    await owner.execute(NEW_PROFILE, tenant.account_id)
    await new_analysis(owner, tenant.account_id)
    await owner.execute(NEW_MODEL_CALL, tenant.account_id, uuid.uuid4())
    await owner.execute(NEW_SCRAPE, tenant.account_id, uuid.uuid4())
    await owner.execute(DATA_POINT, tenant.account_id)
    await owner.execute(PRICES)
    await owner.execute(AI_ANSWER, tenant.account_id)
    await owner.execute(LEASE)
    await owner.execute(RUN, tenant.account_id)
    await owner.execute(BULK_ROWS, tenant.account_id)
    await owner.execute(VISITOR, uuid.uuid4())
    await new_subscription(owner, tenant.account_id)
    await new_delivery(owner, tenant.account_id)
    await owner.execute("insert into billing_prices values ('price_victim', 'growth', null, 2900, 'usd')")
    await owner.execute(NEW_EVENT, tenant.account_id)
    await owner.execute("select traffic.register_worker(gen_random_uuid()::text, 'here', '{}')")
    await owner.execute(CRON_RUN)
    await owner.execute(ADMIN_ACT, tenant.account_id)
    return tenant


@pytest.fixture(scope="module")
async def stranger(owner):
    return await make_tenant(owner)


@pytest.fixture(scope="module")
async def app_user(addresses):
    """A connection as app_user; each test uses its own transactions, which leave nothing behind."""
    connection = await asyncpg.connect(addresses.user)
    yield connection
    await connection.close()


async def enter(connection, who, stranger):
    claims = {
        "other tenant": stranger.claims,
        "anonymous": json.dumps({"role": "anon"}),
        "empty claims": "",
    }.get(who)
    if claims is not None:
        await connection.execute("select set_config('request.jwt.claims', $1, true)", claims)


async def statement_for(owner, command, table):
    columns = await owner.fetchval(COLUMNS, table)
    column = WRITABLE[table][1] if table in WRITABLE else columns.split(", ")[0]
    insert = f"insert into {table} ({columns}) select {columns} from jsonb_populate_record(null::{table}, $1)"
    return {
        "select": f"select * from {table}",
        "insert": insert,
        "upsert": f"{insert} on conflict do nothing",
        "update": f"update {table} set {column} = {column} returning *",
        "delete": f"delete from {table}",
        "truncate": f"truncate {table} cascade",
    }[command]


async def belonging_to(owner, table, tenant):
    rows = await owner.fetch(f"select to_jsonb(t)::text as row from {table} as t")
    rows = [row["row"] for row in rows]
    if not TABLES[table]:
        return rows
    return [row for row in rows if str(tenant.account_id) in row]


async def test_every_table_of_the_catalog_has_a_case(owner):
    assert {row["name"] for row in await owner.fetch(CATALOG)} == set(TABLES)


async def attempt(connection, who, stranger, statement, arguments):
    """Returns the rows that the statement reaches; none when it is denied."""
    try:
        async with connection.transaction():
            await enter(connection, who, stranger)
            return await connection.fetch(statement, *arguments)
    except asyncpg.InsufficientPrivilegeError:
        return []


@pytest.mark.parametrize("who", STRANGERS)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("table", TABLES)
async def test_a_stranger_reaches_no_row(owner, app_user, victim, stranger, table, command, who):
    before = await belonging_to(owner, table, victim)
    assert before, "the victim needs a row in every table for this to prove anything"
    statement = await statement_for(owner, command, table)
    arguments = [before[0]] if "$1" in statement else []

    reached = await attempt(app_user, who, stranger, statement, arguments)

    assert str(victim.account_id) not in str(reached)
    assert await belonging_to(owner, table, victim) == before


@pytest.mark.parametrize(("table", "command"), FORBIDDEN)
async def test_a_member_writes_no_other_table_directly(owner, app_user, victim, table, command):
    before = await belonging_to(owner, table, victim)
    statement = await statement_for(owner, command, table)
    arguments = [before[0]] if "$1" in statement else []

    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with app_user.transaction():
            await app_user.execute("select set_config('request.jwt.claims', $1, true)", victim.claims)
            await app_user.fetch(statement, *arguments)

    assert await belonging_to(owner, table, victim) == before


@pytest.mark.parametrize("table", [table for table, readable in TABLES.items() if readable])
async def test_member_reads_only_their_own_rows(owner, app_user, victim, table):
    readable = await owner.fetchval(READABLE, table)
    statement = f"select to_jsonb(t)::text as row from (select {readable} from {table}) as t"
    async with app_user.transaction():
        await app_user.execute("select set_config('request.jwt.claims', $1, true)", victim.claims)
        rows = await app_user.fetch(statement)

    everything = [row["row"] for row in await owner.fetch(statement)]
    assert sorted(row["row"] for row in rows) == sorted(
        row for row in everything if str(victim.account_id) in row
    )
    assert len(rows) > 0


@pytest.mark.parametrize(
    ("table", "column"), [("public.api_keys", "secret_hash"), ("public.invitations", "token_hash")]
)
async def test_members_do_not_read_hashes(owner, table, column):
    assert column not in (await owner.fetchval(READABLE, table)).split(", ")


async def test_claims_with_a_removed_membership_give_no_access(owner, database, tenant):
    await owner.execute("delete from memberships where account_id = $1", tenant.account_id)

    session = database.user(claims_of(tenant.caller.user_id))
    async with session.transaction():
        rows = await session.fetch("select * from public.credit_accounts")

    assert rows == []


async def as_member(connection, tenant, statement, *arguments):
    async with connection.transaction():
        await connection.execute("select set_config('request.jwt.claims', $1, true)", tenant.claims)
        return await connection.fetch(statement, *arguments)


async def test_a_member_writes_profiles_of_their_own_account(owner, app_user, tenant):
    await as_member(app_user, tenant, NEW_PROFILE, tenant.account_id)

    changed = await as_member(
        app_user, tenant, "update public.business_profiles set name = 'Changed' returning account_id"
    )

    assert [row["account_id"] for row in changed] == [tenant.account_id]
    assert await owner.fetch(
        "select name from public.business_profiles where account_id = $1", tenant.account_id
    ) == [("Changed",)]


async def test_a_member_adds_no_profile_to_another_account(owner, app_user, victim, stranger):
    before = await belonging_to(owner, "public.business_profiles", victim)

    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        await as_member(app_user, stranger, NEW_PROFILE, victim.account_id)

    assert await belonging_to(owner, "public.business_profiles", victim) == before


@pytest.mark.parametrize(
    ("table", "column"),
    [("leads", "score"), ("leads", "account_id"), ("analyses", "result"), ("analyses", "lead_id")],
)
async def test_members_cannot_change_analysis_results(app_user, victim, table, column):
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await as_member(app_user, victim, f"update public.{table} set {column} = {column}")


@pytest.mark.parametrize("column", ["account_id", "id", "created_by", "created_at"])
async def test_identity_and_origin_of_a_profile_never_change(app_user, victim, column):
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await as_member(app_user, victim, f"update public.business_profiles set {column} = {column}")


@pytest.mark.parametrize("role", ["anon", "authenticated"])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("table", TABLES)
async def test_data_api_is_denied_every_statement(owner, victim, table, command, role):
    before = await belonging_to(owner, table, victim)
    statement = await statement_for(owner, command, table)
    arguments = [before[0]] if "$1" in statement else []

    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with owner.transaction():
            await owner.execute(f"set local role {role}")
            await owner.execute("select set_config('request.jwt.claims', $1, true)", victim.claims)
            await owner.fetch(statement, *arguments)

    assert await belonging_to(owner, table, victim) == before
