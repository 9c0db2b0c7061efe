"""Process that handles Stripe events until it is killed; its claims expire after two seconds."""

import asyncio
import logging
import sys
from datetime import timedelta

import structlog

from core.webhooks.incoming import StripeEventWorker
from core.wiring.bootstrap import DatabaseUrls
from core.wiring.slices.billing import stripe_event_processor
from tests.support import dual_client
from tests.system.stripe_events.storm_world import DerivedWorld


async def process(url):
    async with dual_client(DatabaseUrls(owner="", user=url, admin=url)) as database:
        session = database.admin("tests")
        processor = stripe_event_processor(session, DerivedWorld(), claim_for=timedelta(seconds=2))
        print("at work", flush=True)  # noqa: T201  the parent process waits for this line
        await StripeEventWorker(processor, asyncio.Event()).run(asyncio.Event())


# The parent reads only the first line of output, and a full pipe would block this process.
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))

if __name__ == "__main__":
    asyncio.run(process(sys.argv[1]))
