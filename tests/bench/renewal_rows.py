"""Cost of the credits of new periods, against granting the same credits and nothing else."""

import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from meters import resident_mb
from place import BenchFailed, Place
from rounds import Pair, Round
from tenants import open_database, settle

from features.billing.application.renewals import OWN_PER_TRANSACTION, Renewals
from infrastructure.database.billing.subscriptions import PostgresSubscriptionRepository
from infrastructure.database.clients import AdminClient

SUBSCRIPTIONS_COUNT = 100_000
CREDITS = 10  # of the free plan
# The accounts signed up forty days ago, each at its own time, and have not been renewed since.
DUE_ACCOUNTS = """
with made as (
    insert into accounts (name, created_at)
    select 'Renewal', now() - interval '40 days' - number * interval '1 millisecond'
    from generate_series(1, $1::int) as number
    returning id
)
insert into credit_accounts (account_id) select id from made
"""
MAKE_DUE = """
update subscriptions as s
set renews = true, period_index = 0, period_start = s.anchor_at,
    period_end = billing.period_start(s.anchor_at, 1)
from accounts as a where a.id = s.account_id and a.name = 'Renewal' and s.clock = 'internal'
"""
GRANTS = f"""
select count(ledger.grant_credits(
    a.account_id, {CREDITS}, 'bench:' || $1::text, 'subscription_renewal', now() + interval '1 month', 'free'
)) as granted
from (
    select account_id from credit_accounts order by account_id limit {OWN_PER_TRANSACTION} offset $2
) as a
"""


@asynccontextmanager
async def renewals_and_bare_grants(place: Place) -> AsyncGenerator[Round]:
    await _make_due(place)
    async with open_database(place) as database:
        session = database.admin("benchmark")
        repository = PostgresSubscriptionRepository(session)
        grants = _Grants(session)

        async def renew() -> int:
            renewed, credits_granted = await repository.renew_internal(OWN_PER_TRANSACTION)
            if credits_granted != renewed * CREDITS:
                raise BenchFailed("There are no subscriptions left to renew.")
            return renewed

        async def measure_round(seconds: int) -> Pair:
            return Pair(subject=await _per_s(renew, seconds), floor=await _per_s(grants.next_batch, seconds))

        yield measure_round


@asynccontextmanager
async def memory_after_all_and_after_few(place: Place) -> AsyncGenerator[Round]:
    """Memory of the process that renews; every round returns the same pair."""
    await _make_due(place)
    async with open_database(place) as database:
        repository = PostgresSubscriptionRepository(database.admin("benchmark"))
        await repository.renew_internal(OWN_PER_TRANSACTION)
        first_mb = resident_mb(os.getpid())
        summary = await Renewals(repository, None).run(is_dry_run=False)
        last_mb = resident_mb(os.getpid())
    if summary.counts["succeeded"] < SUBSCRIPTIONS_COUNT - OWN_PER_TRANSACTION:
        raise BenchFailed(f"Only {summary.counts['succeeded']} subscriptions were renewed.")

    async def measure_round(_: int) -> Pair:
        return Pair(subject=last_mb, floor=first_mb)

    yield measure_round


class _Grants:
    """The same number of grants per transaction, to consecutive accounts."""

    def __init__(self, session: AdminClient) -> None:
        self._session = session
        self._batch = 0

    async def next_batch(self) -> int:
        self._batch += 1
        offset = self._batch * OWN_PER_TRANSACTION % SUBSCRIPTIONS_COUNT
        (row,) = await self._session.fetch(GRANTS, str(self._batch), offset)
        return row["granted"]


async def _per_s(batch: Callable[[], Awaitable[int]], seconds: float) -> float:
    count = 0
    started_at = time.perf_counter()
    while time.perf_counter() < started_at + seconds:
        count += await batch()
    return count / (time.perf_counter() - started_at)


async def _make_due(place: Place) -> None:
    await place.owner.execute("delete from accounts where name = 'Renewal'")
    await place.owner.execute(DUE_ACCOUNTS, SUBSCRIPTIONS_COUNT)
    await place.owner.execute(MAKE_DUE)
    await settle(place.owner)
