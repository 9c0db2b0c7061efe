"""Cost of a spend, and of a long history."""

import random
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from statistics import median

from place import BenchFailed, Place
from rounds import Pair, Round, calls_per_s
from tenants import BALANCE, ENTRIES_FEW, make_tenant, open_database, settle
from tools import pgbench

ACCOUNTS_COUNT = 1_000
ENTRIES_MANY = 1_000_000

SPEND = "select * from ledger.spend($1, 1, $2, 'analysis')"

# The accounts' ids are the numbers 1 to 1,000, so that a random choice costs the same on both sides.
SPENDING_ACCOUNTS = f"""
with ids as (
    select lpad(to_hex(number), 32, '0')::uuid as id from generate_series(1, {ACCOUNTS_COUNT}) as number
), made as (
    insert into accounts (id, name) select id, 'Bench' from ids
)
insert into credit_accounts (account_id) select id from ids;
select ledger.grant_credits(account_id, 1000000000, 'bench', 'admin_grant') from credit_accounts
where account_id <= lpad(to_hex({ACCOUNTS_COUNT}), 32, '0')::uuid;
"""
SPEND_BY_PGBENCH = f"""\\set number random(1, {ACCOUNTS_COUNT})
select * from ledger.spend(
    lpad(to_hex(:number::int), 32, '0')::uuid, 1, gen_random_uuid()::text, 'analysis');
"""
ENTRIES_EVER = "select sum(entries_count)::bigint from credit_accounts"


@asynccontextmanager
async def spends_and_pgbench(place: Place) -> AsyncGenerator[Round]:
    await place.owner.execute(SPENDING_ACCOUNTS)
    await settle(place.owner)
    script = place.folder / "spend.sql"
    script.write_text(SPEND_BY_PGBENCH)
    async with open_database(place) as database:
        session = database.admin("benchmark")

        async def spend() -> None:
            account_id = uuid.UUID(int=random.randint(1, ACCOUNTS_COUNT))
            (row,) = await session.fetch(SPEND, account_id, str(uuid.uuid4()))
            assert row["outcome"] == "done"

        async def measure_round(seconds: int) -> Pair:
            ours = await calls_per_s(spend, seconds)
            entries_before = await place.owner.fetchval(ENTRIES_EVER)
            theirs, spends_count = await pgbench(place.addresses.admin, script, seconds)
            if await place.owner.fetchval(ENTRIES_EVER) != entries_before + spends_count:
                raise BenchFailed("Not every transaction of pgbench was a spend.")
            return Pair(subject=ours, floor=theirs)

        yield measure_round


@asynccontextmanager
async def long_and_short_history(place: Place) -> AsyncGenerator[Round]:
    many = await make_tenant(place.owner, ENTRIES_MANY)
    few = await make_tenant(place.owner, ENTRIES_FEW)
    await settle(place.owner)
    async with open_database(place) as database:

        async def latency_us(account_id: uuid.UUID, claims: str) -> float:
            started_at = time.perf_counter()
            await database.user(claims).call(BALANCE, account_id)
            return (time.perf_counter() - started_at) * 1e6

        async def measure_round(seconds: int) -> Pair:
            """Alternates call by call, so that no disturbance slows only one of the two."""
            latencies: list[Pair] = []
            until = time.perf_counter() + 2 * seconds
            while time.perf_counter() < until:
                latencies.append(Pair(subject=await latency_us(*many), floor=await latency_us(*few)))
            return Pair(*map(median, zip(*latencies, strict=True)))

        yield measure_round
