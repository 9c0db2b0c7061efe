"""Helper that starts and reads the analyses of one account."""

import itertools
import uuid

from features.analysis.domain.requests import BULK_KIND
from features.runs.domain.refunds import REFUND_POLICY_VERSION
from features.runs.domain.run import NewRun
from infrastructure.database.analysis.bulk_items import PostgresBulkItems
from infrastructure.database.runs.runs import PostgresRuns
from shared.ids import RunId
from simulators.instagram.profiles import kind_of
from tests.support import until

NEW_BUSINESS = """
insert into public.business_profiles (account_id, id, name, created_by, niches, followers_min)
values ($1, $2, 'Alpine Coffee', 'user:x', '{coffee,bread}', $3)
"""
GRANT = "select ledger.grant_credits($1, $2, $3, 'purchase')"
CREDITS = 1_000
PRICES = {"light": 1, "deep": 5, "xray": 6}
FORMS = {"light": 1, "deep": 3, "xray": 4}


def ordinary_names():
    """Yield unique usernames of profiles that are neither private nor missing."""
    word = uuid.uuid4().hex[:8]
    for number in itertools.count():
        if kind_of(name := f"weaver.{word}.{number}") == "ordinary":
            yield name


class Desk:
    def __init__(self, session, owner, tenant, business_id):
        self.session = session
        self.runs = PostgresRuns(session)
        self.items = PostgresBulkItems(session)
        self.owner = owner
        self.account_id = tenant.account_id
        self.business_id = business_id
        self.names = ordinary_names()

    async def start(
        self,
        analysis_type="deep",
        username=None,
        *,
        kind=None,
        is_fresh=False,
        beside=None,
        refund_policy=REFUND_POLICY_VERSION,
        **extra,
    ):
        """``beside``: called with the run's id in the same transaction."""
        username = username or next(self.names)
        business = str(self.business_id)
        new = NewRun(
            account_id=self.account_id,
            id=RunId(uuid.uuid4()),
            kind=kind or f"{analysis_type}_analysis",
            subject={
                "username": username,
                "type": analysis_type,
                "business_profile_id": business,
                "is_fresh": is_fresh,
                **extra,
            },
            credits_held=PRICES[analysis_type],
            transaction_type="analysis",
            queue="runs",
            dedup_key=f"analysis:{analysis_type}:{business}:{username}",
            refund_policy=refund_policy,
        )
        async with self.session.transaction():
            assert (await self.runs.start(new)).outcome == "started"
            if beside is not None:
                await beside(new.id)
        return new.id

    async def start_bulk(self, usernames, analysis_type="light", **fields):
        new = NewRun(
            account_id=self.account_id,
            id=RunId(uuid.uuid4()),
            kind=BULK_KIND,
            subject={
                "type": analysis_type,
                "business_profile_id": str(self.business_id),
                "is_fresh": False,
                "count": len(usernames),
            },
            credits_held=0,
            transaction_type="analysis",
            queue="bulk",
            uses_concurrency_slot=False,
            **fields,
        )
        async with self.session.transaction():
            assert (await self.runs.start(new)).outcome == "started"
            await self.items.add(self.account_id, new.id, list(enumerate(usernames, 1)), [])
        return new.id

    async def grant(self, credits_granted, reference):
        await self.session.fetch(GRANT, self.account_id, credits_granted, reference)

    async def find(self, run_id):
        return await self.runs.find(self.account_id, run_id)

    async def cancel(self, run_id):
        return (await self.runs.request_cancel(self.account_id, run_id))[0]

    async def ended(self, *run_ids):
        """Wait for the end of the runs and return them."""

        async def all_ended():
            runs = [await self.find(run_id) for run_id in run_ids]
            return all(run.is_ended for run in runs) and runs

        return await until(all_ended, timeout_s=90)

    async def saved(self, run_id):
        """Return the number of analyses of the run and of leads whose last analysis it is."""
        return (
            await self.owner.fetchval("select count(*) from analyses where id = $1", run_id),
            await self.owner.fetchval("select count(*) from leads where last_analysis_id = $1", run_id),
        )

    async def statuses(self, bulk_id):
        """Return status and outcome of the bulk's items by position."""
        rows = await self.owner.fetch(
            "select status, outcome from bulk_items where run_id = $1 order by position", bulk_id
        )
        return [tuple(row) for row in rows]

    async def children(self, bulk_id):
        return await self.owner.fetch("select * from runs where parent_id = $1", bulk_id)

    async def all_charged_once(self):
        """True when the ledger audit is clean, no credits are held, and the balance matches the charges."""
        findings = await self.owner.fetch("select * from ledger.audit()")
        row = await self.owner.fetchrow(
            """
            select a.credits_held, a.credits_available + (
                select coalesce(sum(r.credits_charged), 0) from runs as r where r.account_id = a.account_id
            ) as credits_ever, (
                select sum(e.credits_delta) from credit_entries as e
                where e.account_id = a.account_id and e.kind = 'grant'
            ) as granted
            from credit_accounts as a where a.account_id = $1
            """,
            self.account_id,
        )
        return not findings and row["credits_held"] == 0 and row["credits_ever"] == row["granted"]
