"""Limit of concurrent scrapes over all processes."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.support import dual_client

PROCESSES, LOOKS, AT_ONCE = 3, 40, 10


@pytest.mark.parametrize("posts_max", [12, 50], ids=["one run", "two runs"])
async def test_scrape_limit_applies_across_processes(outside, addresses, scrape_rows, posts_max):
    await outside.simulators.latency({"route": "/apify/run", "distribution": "fixed", "ms": 60})

    async with AsyncExitStack() as stack:
        databases = [
            await stack.enter_async_context(dual_client(addresses, pool_size=2)) for _ in range(PROCESSES)
        ]
        sources = [outside.source(database=database, slot_wait_s=60.0) for database in databases]
        await asyncio.gather(
            *(
                sources[number % PROCESSES].fetch(
                    f"weaver.number.{number}", posts_max=posts_max, cost_owner=outside.cost_owner
                )
                for number in range(LOOKS)
            )
        )
        await outside.close()

    runs = (await outside.simulators.state())["apify"]
    assert 1 < runs["running_max"] <= AT_ONCE
    assert runs["running"] == 0
    assert runs["started"] == len(await scrape_rows()) >= LOOKS
