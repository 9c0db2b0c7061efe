"""Process that writes objects to a folder until it is killed. Each object is one repeated byte."""

import asyncio
import sys
from itertools import cycle
from pathlib import Path

from infrastructure.object_store.local import LocalObjectStore


async def write(folder, key):
    store = LocalObjectStore(folder)
    for number in cycle(range(256)):
        await store.put(key, bytes([number]) * 300_000)


asyncio.run(write(Path(sys.argv[1]), sys.argv[2]))
