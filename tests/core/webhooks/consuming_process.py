"""Works on events until somebody kills it. What it claimed then is free again after two seconds."""

import asyncio
import logging
import sys
from datetime import timedelta

import structlog

from core.webhooks.incoming import StripeEventWorker
from core.wiring.bootstrap import DatabaseUrls
from core.wiring.inbox import consumption_on
from tests.core.webhooks.storm_world import DerivedWorld
from tests.support import dual_client


async def consume(url):
    async with dual_client(DatabaseUrls(owner="", user=url, admin=url)) as database:
        session = database.admin("tests")
        consumption = consumption_on(session, DerivedWorld(), claim_for=timedelta(seconds=2))
        print("at work", flush=True)  # noqa: T201  for whoever started us
        await StripeEventWorker(consumption, asyncio.Event()).attend(asyncio.Event())


# Nobody reads what we say after the first line, and a full pipe would stop us.
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))

if __name__ == "__main__":
    asyncio.run(consume(sys.argv[1]))
