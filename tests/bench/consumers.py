"""Event consumers: each line on standard input kills the active one, and another takes over.

They are forked from a process that has imported all modules, so that the storm does not measure imports.
"""

import asyncio
import os
import signal
import sys

from tests.system.stripe_events.consuming_process import consume

while True:
    worker = os.fork()
    if worker == 0:
        asyncio.run(consume(sys.argv[1]))
    if not sys.stdin.readline():
        break
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
    print("killed", flush=True)
os.kill(worker, signal.SIGKILL)
