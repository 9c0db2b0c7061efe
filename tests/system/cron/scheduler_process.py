"""Scheduler process with one slot per second."""

import asyncio
import sys
from datetime import UTC, datetime

from core.cron.scheduler import Scheduler
from core.wiring.bootstrap import DatabaseUrls
from infrastructure.database.operations.cron import PostgresCron
from tests.support import dual_client, until
from tests.system.cron.jobs import EverySecond, job


async def keep_time(owner, user, admin, slots_min):
    async with dual_client(DatabaseUrls(owner=owner, user=user, admin=admin)) as database:
        session, stopping = database.admin("tests"), asyncio.Event()
        scheduler = Scheduler(
            [job(name="every-second")], PostgresCron(session), lambda: datetime.now(UTC), EverySecond()
        )

        async def are_enough():
            rows = await session.fetch("select from public.cron_runs where job = 'every-second'")
            return len(rows) >= slots_min

        attending = asyncio.create_task(scheduler.run(stopping))
        await until(are_enough)
        stopping.set()
        await attending


if __name__ == "__main__":
    asyncio.run(keep_time(*sys.argv[1:4], int(sys.argv[4])))
