"""Process that handles one due event and is killed after a given number of statements."""

import asyncio
import sys

from core.wiring.bootstrap import DatabaseUrls
from core.wiring.slices.billing import stripe_event_processor
from tests.support import dual_client
from tests.system.stripe_events.crashes import CrashingSession, kill_process
from tests.system.stripe_events.storm_world import DerivedWorld


async def main(url, statements_max):
    async with dual_client(DatabaseUrls(owner="", user=url, admin=url), pool_size=2) as database:
        session = CrashingSession(database, statements_max, kill_process)
        processor = stripe_event_processor(session, DerivedWorld())
        for event in await processor.queue.claim(1):
            await processor.process(event)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
