"""Works on events until somebody kills it. What it claimed then is free again after a second."""

import asyncio
import sys
from datetime import timedelta

from core.webhooks.consumer import EventConsumer
from core.wiring.inbox import consumption_on
from core.wiring.place import Addresses
from tests.core.webhooks.storm_world import DerivedWorld
from tests.support import dual_client


async def main(url):
    async with dual_client(Addresses(owner="", user=url, admin=url)) as database:
        session = database.admin("tests")
        consumption = consumption_on(session, DerivedWorld(), claim_for=timedelta(seconds=1))
        print("at work", flush=True)  # noqa: T201  for whoever started us
        await EventConsumer(consumption, asyncio.Event()).attend(asyncio.Event())


asyncio.run(main(sys.argv[1]))
