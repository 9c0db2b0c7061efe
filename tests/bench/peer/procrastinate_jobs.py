"""A job of five steps as a team would build it on procrastinate: five jobs, of which each defers the next
one, so that what is done is done when the worker dies. Its own connector, and its defaults.

Usage: procrastinate_jobs.py prepare | defer COUNT | work
DATABASE_URL says where.
"""

import os
import sys

import uvloop
from procrastinate import App, PsycopgConnector

STEPS = 5
AT_ONCE = 20  # as many as our worker
CONNECTIONS_MAX = 10

app = App(connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"], max_size=CONNECTIONS_MAX))


@app.task(name="step", queue="steps")
async def step(number: int) -> None:
    if number < STEPS:
        await step.defer_async(number=number + 1)


async def main(command: str, *arguments: str) -> None:
    async with app.open_async():
        match command:
            case "prepare":
                await app.schema_manager.apply_schema_async()
            case "defer":
                await step.batch_defer_async(*({"number": 1} for _ in range(int(arguments[0]))))
            case "work":
                await app.run_worker_async(queues=["steps"], concurrency=AT_ONCE)
            case _:
                sys.exit(__doc__)


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
